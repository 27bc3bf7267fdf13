# SESSION is an id, a name or a pid; a word that fits no session, or several, is refused.
startNode a
startDouble a one
startDouble a two
double[twin]=
VGPU_NODE=$dir/a "$doubleProgram" two >"$dir/twin.log" 2>&1 &
double[twin]=$!
waitUntil openedOrEnded twin

refused 'there is no session "three"' ctl a suspend three --to "$dir/x"
refused 'there is no session "three"' ctl a inspect three
refused '"two" matches several sessions' ctl a suspend two --to "$dir/x"
grep -q "pid ${double[two]}" "$dir/refused.log" || fail "the ids are not listed"
isGone "$dir/x" || fail "a refused suspend made a directory"

id=$(field a "${double[two]}" session)
succeeds ctl a suspend one --to "$dir/by-name"
succeeds ctl a suspend "$id" --to "$dir/by-id"
succeeds ctl a suspend "${double[twin]}" --to "$dir/by-pid"
hasState a "$id" suspended || fail "not suspended"
refused "is suspended already" ctl a suspend one --to "$dir/x"
