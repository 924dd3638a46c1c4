# SPDX-License-Identifier: ISC
#
# rigctl's completion for fish. Adapters and clients are asked of rigd, by the options that were typed.

set -l verbs list show clients top stats trace limits firmware log-level reload

function __rigctl_names
    set -l bus (string match -r -- '^--(?:user|system|address=.*)$' (commandline -opc))
    rigctl $bus $argv[1] --no-legend --json=off 2>/dev/null </dev/null | string trim | string replace -r ' .*' ''
end

# Whether the verb is one of these.
function __rigctl_is
    __fish_seen_subcommand_from $argv
end

# Whether the word before is one of these.
function __rigctl_behind
    contains -- (commandline -opc)[-1] $argv
end

complete -c rigctl -f

complete -c rigctl -n "not __fish_seen_subcommand_from $verbs" -a list -d 'list adapters, and what their memory is used for'
complete -c rigctl -n "not __fish_seen_subcommand_from $verbs" -a show -d 'show an adapter or a client, with its devices'
complete -c rigctl -n "not __fish_seen_subcommand_from $verbs" -a clients -d 'list who is connected, and what they hold'
complete -c rigctl -n "not __fish_seen_subcommand_from $verbs" -a top -d 'watch adapters and clients'
complete -c rigctl -n "not __fish_seen_subcommand_from $verbs" -a stats -d 'show all that is counted since rigd started'
complete -c rigctl -n "not __fish_seen_subcommand_from $verbs" -a trace -d 'record what devices do, for ui.perfetto.dev'
complete -c rigctl -n "not __fish_seen_subcommand_from $verbs" -a limits -d 'show or set what a client may hold'
complete -c rigctl -n "not __fish_seen_subcommand_from $verbs" -a firmware -d 'see and fetch the firmware that GPUs need'
complete -c rigctl -n "not __fish_seen_subcommand_from $verbs" -a log-level -d 'show or set which lines rigd logs'
complete -c rigctl -n "not __fish_seen_subcommand_from $verbs" -a reload -d 'let rigd read its configuration again'

complete -c rigctl -l system -d 'ask the rigd of the system'
complete -c rigctl -l user -d 'ask the rigd of your user'
complete -c rigctl -l address -x -d 'ask the rigd on that bus'
complete -c rigctl -l no-ask-password -d 'never let polkit ask for a password'
complete -c rigctl -s h -l help -d 'say how it is called'
complete -c rigctl -l version -d 'say which'

set -l listing "not __rigctl_is trace log-level reload"
complete -c rigctl -n $listing -s j -d 'write JSON'
complete -c rigctl -n $listing -l json -a 'pretty short off' -d 'write JSON'
complete -c rigctl -n $listing -l no-legend -d 'no heads of columns, no counts below'

complete -c rigctl -n '__rigctl_is clients' -l sort -x -a 'number pid user unit command devices objects bytes runs time copied' -d 'by what'
complete -c rigctl -n '__rigctl_is top' -l sort -x -a 'time runs copied bytes pid user number' -d 'by what'
complete -c rigctl -n '__rigctl_is clients top' -s r -l reverse -d 'the other way round'
complete -c rigctl -n '__rigctl_is top' -s d -l delay -x -d 'between two frames'
complete -c rigctl -n '__rigctl_is top' -s n -l iterations -x -d 'end after so many frames'
complete -c rigctl -n '__rigctl_is top' -s b -l batch -d 'one frame below the other'

complete -c rigctl -n '__rigctl_is trace' -l client -x -a '(__rigctl_names clients)' -d 'of one client alone'
complete -c rigctl -n '__rigctl_is trace firmware' -s t -l time -x -d 'for so long'
complete -c rigctl -n '__rigctl_is trace' -s o -l output -r -F -d 'where to'
complete -c rigctl -n '__rigctl_is trace' -s f -l force -d 'replace also a file that is no trace'

complete -c rigctl -n '__rigctl_is firmware' -l from -x -d 'where upstream has them'
complete -c rigctl -n '__rigctl_is firmware' -l path -x -a '(__fish_complete_directories)' -d 'look there first'
complete -c rigctl -n '__rigctl_is firmware' -l images -r -F -d 'of another table'

complete -c rigctl -n '__rigctl_behind firmware' -a 'list check fetch'
complete -c rigctl -n '__rigctl_is firmware; and __rigctl_behind list check fetch' -a 'amd nvidia'
complete -c rigctl -n '__rigctl_behind show' -a 'client adapter (__rigctl_names list) (__rigctl_names clients)'
complete -c rigctl -n '__rigctl_is show; and __rigctl_behind client' -a '(__rigctl_names clients)'
complete -c rigctl -n '__rigctl_is show; and __rigctl_behind adapter' -a '(__rigctl_names list)'
complete -c rigctl -n '__rigctl_behind limits' -a '(__rigctl_names clients)'
complete -c rigctl -n '__rigctl_is limits; and not __rigctl_behind limits' -a 'ObjectsMax= MemoryMax= RunsMax= CacheMax= QueueMax='
complete -c rigctl -n '__rigctl_behind log-level' -a 'err warning notice info debug'
