# A suspend whose caller gives up, and one that the program refuses, change nothing.
startNode a
startDouble a one
suspendAtStandstill a one x
refused "is being suspended, resumed or migrated already" ctl a suspend one --to "$dir/y"
kill -INT "$(processesOfRun vgpuctl)"
wait "$suspend" && fail "a suspend that was given up succeeded"
waitUntil hasState a one running
waitUntil says one 'gate open'
kill -CONT "$worker"
waitUntil isGone "$dir/x"
stillWorks a one

DOUBLE_REFUSES=1 startDouble a two
refused "cannot close its gate: this double keeps its gate open" ctl a suspend two --to "$dir/z"
hasState a two running || fail "a refused suspend changed the session"
waitUntil isGone "$dir/z"
