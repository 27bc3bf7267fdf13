# `inspect` reports the same about a snapshot as its suspend and its resume do.
startNode a
startDouble a one
succeeds ctl a suspend one --to "$dir/good"
of() { ctl a inspect "$1" --json | python3 -c '
import json, sys
print(json.load(sys.stdin)[sys.argv[1]])' "$2"; }
[ "$(of "$dir/good" session)" = "$(field a one session)" ] || fail "it is of another session"
[ "$(of "$dir/good" deviceBytes)" = 0 ] || fail "a program without memory has $(of "$dir/good" deviceBytes) bytes of it"

# Arrays count as device memory too.
"$tree/tests/tools/reseal" "$dir/good/manifest.json" /state/memory '[[0, 35184372088832, 1000]]' || fail "cannot forge a manifest"
"$tree/tests/tools/reseal" "$dir/good/manifest.json" /state/arrays '[[11, 300], [12, 16]]' || fail "cannot forge a manifest"
"$tree/tests/tools/reseal" "$dir/good/manifest.json" deviceBytes 1316 || fail "cannot forge a manifest"
[ "$(of "$dir/good" deviceBytes)" = 1316 ] || fail "arrays are not counted: $(of "$dir/good" deviceBytes)"
[ "$(of "$dir/good" arrays)" = 2 ] || fail "the number of arrays is not told"
ctl a inspect "$dir/good" >"$dir/inspect.log" || fail "inspect failed"
says inspect '^memory .*1.3 KiB in 1 ranges and 2 arrays' || fail "people are told something else"
