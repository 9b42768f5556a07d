# fish completion for ki and its programs. What there is to complete is read from --help, so it is never older than the program.
function __ki_before # the program and the verbs typed so far
    set -l words (commandline -opc)
    set -l before $words[1]
    for word in $words[2..-1]
        string match -q -- '-*' $word; and continue
        test (count $before) -lt 3; and set -a before $word
    end
    switch $before[1]
        case '*ki-ingest' '*ki-normalize' '*ki-verify'
            set before $before[1]
        case '*'
            test "$before[2]" = verify; or set before $before[1..2]
    end
    string join \n -- $before
end
function __ki_complete
    set -l before (__ki_before)
    set -l words (commandline -opc)
    set -l help ($before --help 2>/dev/null)
    if string match -q -- '--*' $words[-1]
        set -l value (string match -r -g -- "^  $words[-1] (\S+)" $help)
        if string match -q -- '*|*' $value[1]
            string split '|' $value[1]
            return
        end
    end
    if string match -q -- '-*' (commandline -ct)
        string match -r -g -- '^  (--[a-z-]+)' $help
    else if test (count $before) -eq 1
        string match -r -g -- '^  ([a-z][a-z-]*)  ' $help
        string match -r -g -- 'ki-verify ([a-z][a-z-]*)' $help
    else if test "$before" = "$before[1] verify"
        string match -r -g -- 'ki verify ([a-z][a-z-]*)' $help
    else if test "$before[2]" = config
        printf 'check\nexplain\n'
    end
end
for program in ki ki-ingest ki-normalize ki-store ki-verify
    complete -c $program -a '(__ki_complete)'
end
