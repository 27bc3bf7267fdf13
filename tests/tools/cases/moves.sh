# A session is moved from node to node; both report the same about it, and the program notices only its gate.
startNode a
startNode b
startDouble a one
id=$(field a one session)
succeeds ctl a suspend one --to "$dir/1"
hasState a one suspended || fail "not suspended on a"
[ "$(field a one workerPid)" = 0 ] || fail "a suspended session has a worker"
[ "$(field a one snapshot)" = "$dir/1" ] || fail "ps does not say where the snapshot is"
succeeds ctl b resume "$dir/1"
hasState b "$id" running || fail "not running on b"
waitUntil listsNot a one
refused "is not suspended: its program" ctl b resume "$dir/1"
refused "is not suspended" ctl a resume "$dir/1"
succeeds ctl b suspend one --to "$dir/2"
succeeds ctl a resume "$dir/2"
hasState a "$id" running || fail "not running on a again"
opened() { [ "$(grep -c 'gate open' "$dir/one.log")" = "$1" ]; }
waitUntil opened 2  # by the program, whom the node has told so
[ "$(grep -c 'gate closed' "$dir/one.log")" = 2 ] || fail "the gate was not closed twice"

# The same node again, and relative paths.
cd "$dir" || fail "no $dir"
succeeds ctl a suspend one --to there
[ -n "$(ls -A "$dir/there")" ] || fail "a relative path meant something else"
succeeds ctl a resume there
stillWorks a one
