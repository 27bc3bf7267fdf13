# A program's state folder that hangs (a dead network file system) stops neither the daemon nor other sessions.
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

# The next daemon removes what was left, when the folder no longer hangs.
kill -TERM "$hung"
waitUntil ended "$hung"
stopNode a
startNode a
waitUntil isGone "$state"
