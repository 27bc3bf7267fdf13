# What kernels keep in the device's own heap cannot be saved: such a program is not suspended, is told so, and goes on.
startNode a
heap=$tree/tests/programs/device-heap
[ -x "$heap" ] || skip "no $heap"
VGPU_PAUSE_FILE=$dir/pause ctl a run -- "$heap" >"$dir/heap.log" 2>&1 &
runner=$!
waitUntil test -e "$dir/pause.reached"
pid=$(cat "$dir/pause.reached")
refused "use malloc on the device, whose heap cannot be saved" ctl a suspend "$pid" --to "$dir/x"
waitUntil isGone "$dir/x"
hasState a "$pid" running || fail "the program is $(field a "$pid" state), not running"
: >"$dir/pause.go"
wait "$runner" || fail "the program returned $?"
says heap 'device-heap: ok' || fail "the program lost something"
