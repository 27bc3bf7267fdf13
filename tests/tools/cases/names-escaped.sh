# A program's name is escaped before it reaches a terminal or the log.
escape=$'\033' name=$'ev\033[2Jil\nsession forged (\u0085 \u202e)'
startNode a
VGPU_NODE=$dir/a "$doubleProgram" "$name" >"$dir/named.log" 2>&1 &
double[named]=$!
waitUntil openedOrEnded named
clean() { ! grep -q -e "$escape" -e $'\u0085' -e $'\u202e' "$1"; }
ctl a ps >"$dir/ps.log" || fail "ps failed"
clean "$dir/ps.log" || fail "ps prints control characters"
[ "$(wc -l <"$dir/ps.log")" = 2 ] || fail "a name makes lines in ps"
says ps 'ev\\x1b\[2Jil\\nsession forged (\\xc2\\x85 \\xe2\\x80\\xae)' || fail "the name is not shown escaped"
ctl a ps --json >"$dir/json.log" || fail "ps --json failed"
clean "$dir/json.log" || fail "JSON has control characters"
[ "$(field a "${double[named]}" name)" = "$name" ] || fail "JSON does not have the name"
ctl a inspect "${double[named]}" >"$dir/inspect.log" || fail "inspect failed"
clean "$dir/inspect.log" || fail "inspect prints control characters"
succeeds ctl a suspend "$name" --to "$dir/snapshot"
clean "$dir/succeeds.log" || fail "suspend prints control characters"
ctl a inspect "$dir/snapshot" >"$dir/snapshot.log" || fail "inspect of the snapshot failed"
clean "$dir/snapshot.log" || fail "inspect of a snapshot prints control characters"
refused 'is suspended already' ctl a suspend "$name" --to "$dir/snapshot-2"
clean "$dir/a.log" || fail "the log has control characters"
says a '^session forged' && fail "a name makes lines in the log"
kill -KILL "${double[named]}"
waitUntil listsNot a "${double[named]}"
refused 'has ended' ctl a resume "$dir/snapshot"
clean "$dir/refused.log" || fail "an error prints control characters"
