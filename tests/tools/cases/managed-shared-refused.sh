# Where a driver puts a __managed__ variable that several devices use, it does not put it again: such a program is not suspended, and
# does not move, is told so, and goes on.
shared=$tree/tests/programs/managed-shared
[ -x "$shared" ] || skip "no $shared"
export VGPU_EMULATED=devices=2
startNode a
startNode b
VGPU_PAUSE_FILE=$dir/pause ctl a run -- "$shared" >"$dir/shared.log" 2>&1 &
runner=$!
waitUntil test -e "$dir/pause.reached"
pid=$(cat "$dir/pause.reached")
refused "several devices of this program use a __managed__ variable" ctl a suspend "$pid" --to "$dir/x"
waitUntil isGone "$dir/x"
refused "several devices of this program use a __managed__ variable" ctl a migrate "$pid" --to "$dir/b"
refused "refused module 0x[0-9a-f]*: several devices of this program" ctl a explain "$pid"
hasState a "$pid" running || fail "the program is $(field a "$pid" state), not running"
: >"$dir/pause.go"
wait "$runner" || fail "the program returned $?"
says shared 'managed-shared: ok' || fail "the program lost something"
