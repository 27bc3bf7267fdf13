# A program that a daemon reattaches cannot choose the folder in which the daemon writes and deletes.
startNode a
startRogue a rogue reattach "$dir/other"
waitUntil says rogue '^opened'
id=$(field a rogue session)
succeeds ctl a suspend rogue --to "$dir/snapshot"
foreign=$dir/other/sessions/$id
[ -e "$foreign/precious" ] || fail "the case is not set up"
refused "is not the state directory of session $id" ctl a resume "$dir/snapshot"
hasState a rogue suspended || fail "the session is $(field a rogue state)"
kill -TERM "${double[rogue]}"
waitUntil listsNot a rogue
waitUntil isGone "$dir/a/sessions/$id"
[ -e "$foreign/precious" ] || fail "the daemon deleted a folder that the program named"
