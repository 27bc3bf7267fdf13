# A session that shares memory with another is not suspended, nor is the other, and both are named. Afterwards it is.
program=$tree/tests/programs/ipc-memory
[ -x "$program" ] || skip "no $program"
startNode a
VGPU_PAUSE_FILE=$dir/pause ctl a run -- "$program" hold >"$dir/shares.log" 2>&1 &
runner=$!
waitUntil test -e "$dir/pause.reached"
pid=$(cat "$dir/pause.reached")
ctl a ps --json >"$dir/report.log"
child=$(python3 -c '
import json, sys
print(" ".join(str(s["pid"]) for s in json.load(sys.stdin) if s["pid"] != int(sys.argv[1])))' "$pid" <"$dir/report.log")
[ -n "$child" ] || fail "the child has no session of its own"

refused "shares with others.* (ipc-memory, pid $child) has memory of it" ctl a suspend "pid:$pid" --to "$dir/x"
refused "shares with others.*it has memory of session .* (ipc-memory, pid $pid)" ctl a suspend "pid:$child" --to "$dir/x"
refused "shares with others.* (ipc-memory, pid $child) has memory of it" ctl a snapshot "pid:$pid" --to "$dir/x"
[ ! -e "$dir/x" ] || fail "a refused suspend has left a snapshot"
refused "refused what it shares: .*pid $child) has memory of it" ctl a explain "pid:$pid"

: >"$dir/pause.go"
wait "$runner" || fail "the program returned $?"
says shares 'ipc-memory: ok' || fail "the program was wrong"
