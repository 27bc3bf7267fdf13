# `explain` names what would stop or delay a suspend: each object, and a running kernel by its name.
startNode a
startContents a one 8
succeeds ctl a explain one
grep -q "would succeed: 8.0 MiB" "$dir/succeeds.log" || fail "it says something else: $(cat "$dir/succeeds.log")"
hasState a one running || fail "the program is $(field a one state)"
memoryIsRight one
succeeds ctl a suspend one --to "$dir/x"
refused "does not run: there is nothing to suspend" ctl a explain one
succeeds ctl a resume "$dir/x"
endContents one

heap=$tree/tests/programs/device-heap
[ -x "$heap" ] || skip "no $heap"
VGPU_PAUSE_FILE=$dir/pause ctl a run -- "$heap" >"$dir/heap.log" 2>&1 &
runner=$!
waitUntil test -e "$dir/pause.reached"
refused "refused module 0x[0-9a-f]*: .*use malloc on the device" ctl a explain device-heap
ctl a explain device-heap --json >"$dir/report.log"
python3 -c '
import json, sys
found = json.load(sys.stdin)
names = all(o["refuses"] and "module 0x" in o["object"] for o in found["obstacles"])
sys.exit(not (found["refused"] and names))' <"$dir/report.log" || fail "the JSON says something else"
hasState a device-heap running || fail "the program is $(field a device-heap state)"
: >"$dir/pause.go"
wait "$runner" || fail "the program returned $?"

endless=$tree/tests/programs/endless
[ -x "$endless" ] || skip "no $endless"
rm -f "$dir/pause.reached" "$dir/pause.go"
VGPU_PAUSE_FILE=$dir/pause ctl a run -- "$endless" pause >"$dir/endless.log" 2>&1 &
runner=$!
waitUntil test -e "$dir/pause.reached"
# The program does not wait until the worker has launched the kernel.
namesKernel() { ctl a explain endless | finds "delayed kernel spin(int const volatile\*, int\*): device 0 is executing it"; }
waitUntil namesKernel
hasState a endless running || fail "the program is $(field a endless state)"
: >"$dir/pause.go"
wait "$runner" || fail "the program returned $?"
says endless 'endless: ok' || fail "the program was wrong"
