# Freed memory is kept while a program allocates it again and again, and returned when it does not.
export VGPU_EMULATED=memory=16GiB
startNode a
program=$tree/tests/programs/idle-memory
[ -x "$program" ] || skip "no $program"

# objects EXPRESSION: evaluates EXPRESSION over the program's objects, by kind.
objects() {
  ctl a inspect "$pid" --json | python3 -c '
import json, sys
live = [made for made in json.load(sys.stdin)["objects"] if not made["destroyed"]]
of = lambda kind: [made for made in live if made["kind"] == kind]
print(eval(sys.argv[1]))' "$1"
}
# pauseAt INDEX [ARGUMENT]
pauseAt() {
  rm -f "$dir"/pause.*
  VGPU_PAUSE_FILE=$dir/pause VGPU_PAUSE_INDEX=$1 ctl a run -- "$program" "${@:2}" >"$dir/program.log" 2>&1 &
  runner=$!
  waitUntil test -e "$dir/pause.reached"
  pid=$(cat "$dir/pause.reached")
}
goOn() {
  : >"$dir/pause.go"
  wait "$runner" || fail "the program returned $?"
}
isTrue() { [ "$(objects "$1")" = True ]; }

pauseAt 0
waitUntil isTrue 'len(of("memory")) == 2 and len(of("event")) == 1'
isTrue 'all(made["position"] < of("event")[0]["position"] for made in of("lease") if made["bytes"] >= 1 << 29)' ||
  fail "every round has leased its memory anew"
goOn
for index in 1 2 3; do
  pauseAt "$index"
  waitUntil isTrue 'not of("memory") and sum(made["bytes"] for made in of("lease")) <= 256 << 20'
  goOn
done

# A suspend saves no bytes of a stream-ordered free whose preceding work has finished. The first suspend may save them: if the worker does
# not complete the free within a tenth of a second.
pauseAt 0 little
savesNone() {
  local code=0
  rm -rf "$dir/little"
  succeeds ctl a suspend "pid:$pid" --to "$dir/little" --json
  python3 -c 'import json, sys; sys.exit(json.load(sys.stdin)["deviceBytes"] >= 8 << 20)' <"$dir/succeeds.log" || code=1
  succeeds ctl a resume "$dir/little"
  return $code
}
waitUntil savesNone
goOn

# Pinned memory is not returned while the GPU has work, because its return waits for all of it.
pauseAt 0 "$dir/ended"
waitUntil isTrue 'not of("host memory")'
isTrue 'sum(made["bytes"] for made in of("host lease")) == 512 << 20' || fail "what is pinned was returned beside work"
: >"$dir/ended"
waitUntil isTrue 'not of("host lease")'
goOn
