# Default streams of threads that have ended are destroyed.
startNode a
program=$tree/tests/programs/short-threads
[ -x "$program" ] || skip "no $program"
VGPU_PAUSE_FILE=$dir/pause ctl a run -- "$program" >"$dir/program.log" 2>&1 &
runner=$!
waitUntil test -e "$dir/pause.reached"
pid=$(cat "$dir/pause.reached")
streams() {
  ctl a inspect "$pid" --json | python3 -c '
import json, sys
print(sum(made["kind"] == "stream" and not made["destroyed"] for made in json.load(sys.stdin)["objects"]))'
}
fewStreams() { [ "$(streams)" -le 4 ]; }
waitUntil fewStreams
: >"$dir/pause.go"
wait "$runner" || fail "the program returned $?"
says program 'short-threads: ok' || fail "the threads' work was lost"
