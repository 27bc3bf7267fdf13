# A state directory is removed after its program has ended, whatever happened to the daemon that made it: the present daemon of its run
# directory removes it.

# Its daemon is killed while it runs; the program lives on for a while after the next daemon has started.
startNode a
DOUBLE_STAYS=1 startDouble a one
state=$(field a one directory)
killNode a
waitUntil says one '^lost'
startNode a
[ -d "$state" ] || fail "the state of a program that lives was removed"
kill -TERM "${double[one]}"
waitUntil isGone "$state"

# Its daemon is killed while it is suspended, and it is never resumed.
startDouble a two
state=$(field a two directory)
succeeds ctl a suspend two --to "$dir/x"
killNode a
startNode a
[ -d "$state" ] || fail "the state of a program that is suspended was removed"
kill -KILL "${double[two]}"
waitUntil isGone "$state"

# It was resumed on another node, whose daemon is killed.
startNode b
DOUBLE_STAYS=1 startDouble a three
state=$(field a three directory)
succeeds ctl a suspend three --to "$dir/y"
succeeds ctl b resume "$dir/y"
killNode b
waitUntil says three '^lost'
[ -d "$state" ] || fail "the state of a program that lives was removed"
kill -TERM "${double[three]}"
waitUntil isGone "$state"

# Its worker was lost before its daemon was ended: no daemon needs its state any more.
DOUBLE_STAYS=1 startDouble a four
state=$(field a four directory)
kill -KILL "$(field a four workerPid)"
waitUntil hasState a four lost
stopNode a
isGone "$state" || fail "a session that was lost has left its state"
