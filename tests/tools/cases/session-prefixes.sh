# pid:, id: and name: say what a word is; a plain word that fits several sessions is refused.
startNode a
startDouble a one
startDouble a "${double[one]}"  # its name is the other program's pid
pid=${double[one]} named=${double[${double[one]}]}
id=$(field a "$named" session)

refused "\"$pid\" matches several sessions" ctl a suspend "$pid" --to "$dir/x"
grep -q "id:$id" "$dir/refused.log" || fail "it is not said how to name one of them"
succeeds ctl a suspend "name:$pid" --to "$dir/by-name"
hasState a "$id" suspended || fail "another session was suspended"
hasState a one running || fail "another session was suspended too"
succeeds ctl a suspend "pid:$pid" --to "$dir/by-pid"
hasState a one suspended || fail "the session of that pid was not suspended"
succeeds ctl a inspect "id:$id"

# One session's name is the other's id.
startDouble a "$id"
refused "\"$id\" matches several sessions" ctl a inspect "$id"
succeeds ctl a inspect "name:$id"
refused 'there is no session "pid:none"' ctl a inspect pid:none
refused 'there is no session "id:one"' ctl a inspect id:one
