# A private daemon that ends keeps the state of a suspended session, and prints its path.
program=$tree/tests/programs/linked-list
[ -x "$program" ] || skip "no $program"
startNode a
mkdir "$dir/runtime"
XDG_RUNTIME_DIR=$dir/runtime VGPU_PAUSE_FILE=$dir/pause LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} \
  "$tree/bin/vgpuctl" run -- "$program" >"$dir/program.log" 2>&1 &
runner=$!
waitUntil test -e "$dir/pause.reached"
node=$(echo "$dir"/runtime/vgpu-run-*)
succeeds "$tree/bin/vgpuctl" --node "$node" suspend linked-list --to "$dir/x"
private=$(processesOfRun vgpud | grep -vx "${daemon[a]}")  # in the order of their digits: either may be the last
kill -TERM "$private"
waitUntil ended "$private"
state=$(echo "$node"/sessions/*)
[ -e "$state/owner" ] || fail "the session's state was removed"
says program "its state stays in $state" || fail "nobody said where the state is"
succeeds ctl a resume "$dir/x"
succeeds ctl a suspend linked-list --to "$dir/y"
succeeds ctl a resume "$dir/y"
: >"$dir/pause.go"
wait "$runner" || fail "the program returned $?"
says program 'linked-list: ok' || fail "the program was wrong"
waitUntil isGone "$node"
