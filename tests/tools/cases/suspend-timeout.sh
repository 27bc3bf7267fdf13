# A kernel that does not end: the suspend names it, gives up in time, and the program goes on.
program=$tree/tests/programs/endless
[ -x "$program" ] || skip "no $program"
startNode a
VGPU_PAUSE_FILE=$dir/pause ctl a run -- "$program" pause >"$dir/program.log" 2>&1 &
runner=$!
waitUntil test -e "$dir/pause.reached"
VGPU_PROGRESS=1 refused "GPU is still busy (kernel spin(int const volatile\*, int\*)) after 1 s" \
  ctl a suspend endless --to "$dir/x" --timeout 1
grep -q "waiting for the GPU (kernel spin" "$dir/refused.log" || fail "nobody said what was waited for"
waitUntil isGone "$dir/x"
hasState a endless running || fail "the program is $(field a endless state)"

# If its caller gives up, the suspend ends at once, not with the kernel.
ctl a suspend endless --to "$dir/y" >"$dir/suspend.log" 2>&1 &
suspend=$!
waitUntil hasState a endless suspending
kill -INT "$(commandsOf suspend)"
wait "$suspend" && fail "a suspend that was given up succeeded"
waitUntil isGone "$dir/y"
: >"$dir/pause.go"
wait "$runner" || fail "the program returned $?"
says program 'endless: ok' || fail "the program was wrong"
