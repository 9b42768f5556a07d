# A --help text (store/help.h has its shape) to mdoc: usage lines, paragraphs, options, verbs.
function text(s) {
	gsub(/\\/, "\\e", s)
	gsub(/\. /, ".\n", s)
	if (s ~ /^[.']/) s = "\\&" s
	return s
}
function close_list() { if (list) print ".El"; list = 0 }
function open_list(title) {
	if (list) return
	if (title && !(title in seen)) { if (heading == "") print ".Sh " toupper(title); seen[title] = 1 }
	print ".Bl -tag -width Ds"
	list = 1
}
BEGIN { print heading == "" ? ".Sh SYNOPSIS" : ".Sh " toupper(heading) }
/^usage: / || /^       [a-z]/ && usage {
	if (!usage) print ".Bd -literal -compact"
	usage = 1
	print text(substr($0, 8))
	next
}
usage == 1 { print ".Ed"; if (heading == "") print ".Sh DESCRIPTION"; usage = 2; if (heading != "") fresh = 1 }
/^  --/ {
	open_list("options")
	line = substr($0, 3)
	n = split(line, w, " ")
	if (n > 1 && w[2] ~ /^([A-Z][A-Z0-9,]*|[a-z0-9-]+(\|[a-z0-9-]+)+|-)$/ && line ~ /^--[a-z-]+ [^ ]/) {
		print ".It Fl " substr(w[1], 2) " Ar " w[2]
		sub(/^[^ ]+ +[^ ]+ */, "", line)
	} else {
		print ".It Fl " substr(w[1], 2)
		sub(/^[^ ]+ */, "", line)
	}
	if (line != "") print text(line)
	next
}
/^  [a-z]/ && !/ki / {
	open_list("commands")
	print ".It Cm " $1
	line = $0
	sub(/^ +[a-z-]+ */, "", line)
	if (line != "") print text(line)
	next
}
list && /^    / { sub(/^ +/, ""); print text($0); next }
/^$/ { if (list) close_list(); fresh = 1; next }
{
	close_list()
	if (/^(exit|Exit)/) skip = 1 # EXIT STATUS stands in every page
	if (skip) next
	if (fresh && said) print ".Pp"
	fresh = 0; said = 1
	sub(/^ +/, "")
	print text($0)
}
END { close_list(); if (usage == 1) print ".Ed" }
