# bash completion for ki and its programs. What there is to complete is read from --help, so it is never older than the program.
_ki_help() { # words before the cursor, without options: print the --help that fits
	local program=$1 verb=$2 sub=$3
	case $program in
	*ki) if [ -z "$verb" ]; then "$program" --help; elif [ "$verb" = verify ] && [ -n "$sub" ]; then
		"$program" verify "$sub" --help; else "$program" "$verb" --help; fi ;;
	*) if [ "${program##*/}" = ki-store ] && [ -n "$verb" ]; then "$program" "$verb" --help; else "$program" --help; fi ;;
	esac 2>/dev/null
}
_ki_verbs() { # program, verb: the words that may follow
	case $1/$2 in
	*ki/) "$1" --help ;;
	*ki-store/) "$1" --help ;;
	*ki/verify) "$1" verify --help | sed -n 's/^ *\(usage: \)\{0,1\} *ki verify \([a-z][a-z-]*\).*/  \2 /p' ;;
	*ki-verify/) "$1" --help | sed -n 's/^ *\(usage: \)\{0,1\} *ki-verify \([a-z][a-z-]*\).*/  \2 /p' ;;
	*ki/config) printf '  check \n  explain \n' ;;
	esac 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  *.*/\1/p'
}
_ki() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} program=${COMP_WORDS[0]} verb='' sub='' word i value
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		-*) ;;
		*) if [ -z "$verb" ]; then verb=$word; elif [ -z "$sub" ]; then sub=$word; fi ;;
		esac
	done
	value=
	case $prev in --*) value=$(_ki_help "$program" "$verb" "$sub" | sed -n "s/^  $prev \\([^ ][^ ]*\\).*/\\1/p" | head -n 1) ;; esac
	case $value in
	*\|*) mapfile -t COMPREPLY < <(compgen -W "${value//|/ }" -- "$cur") ;;
	DIR) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
	FILE | EVIDENCE) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	[A-Z]*) COMPREPLY=() ;;
	*) case $cur in
		-*) mapfile -t COMPREPLY < <(compgen -W "$(_ki_help "$program" "$verb" "$sub" | sed -n 's/^  \(--[a-z-]*\).*/\1/p')" -- "$cur") ;;
		*) mapfile -t COMPREPLY < <(compgen -W "$(_ki_verbs "$program" "$verb")" -- "$cur")
			[ -z "$verb" ] || [ ${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
		esac ;;
	esac
}
complete -o filenames -F _ki ki ki-ingest ki-normalize ki-store ki-verify
