# A program's state that hangs (a dead network folder) stops neither the daemon nor other sessions.
startNode a
startDouble a one
startDouble a two
state=$(field a one directory)
hangFolder "$state/stuck"
kill -TERM "${double[one]}"
waitUntil listsNot a one
[ -d "$state" ] || fail "a folder that hangs was removed"
stillWorks a two
startDouble a three

# What stayed is removed by the next daemon, when it hangs no more.
kill -TERM "$hung"
waitUntil ended "$hung"
stopNode a
startNode a
waitUntil isGone "$state"
