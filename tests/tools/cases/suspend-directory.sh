# A suspend locks its directory from the start, and a suspend that fails removes only what it made.
startNode a
startDouble a one
startDouble a two
suspendAtStandstill a one x
refused "another suspend is writing there" ctl a suspend two --to "$dir/x"
hasState a two running || fail "the second program is $(field a two state)"
says two 'gate closed' && fail "the second program was stopped for nothing"
touch "$dir/x/thesis.tex"
kill -KILL "$worker"
wait "$suspend" && fail "a suspend without a worker succeeded"
onlyThesis() { [ "$(ls -A "$dir/x")" = thesis.tex ]; }
waitUntil onlyThesis

# The lock ends with its holder.
startDouble a three
suspendAtStandstill a three y
killNode a
waitUntil ended "$worker"
startNode b
startDouble b four
succeeds ctl b suspend four --to "$dir/y"
