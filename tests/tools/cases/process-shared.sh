# A program whose processes share GPU memory is saved with them and resumed; copying it is refused by name before anything is restored.
program=$tree/tests/programs/ipc-memory
[ -x "$program" ] || skip "no $program"
export VGPU_FAULT_LOG=$dir/faults
startNode a
startNode b
needCriu a
VGPU_PAUSE_FILE=$dir/pause LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} "$tree/bin/vgpuctl" --node "unix:$dir/a/vgpud.sock" run -- "$program" hold \
  >"$dir/shares.log" 2>&1 </dev/null &
waitUntil test -e "$dir/pause.reached"
pid=$(cat "$dir/pause.reached")
succeeds ctl a suspend "pid:$pid" --process --to "$dir/saved"
waitUntil ended "$pid"
refused "session [a-z0-9]* shares memory or events with session [a-z0-9]*: such a session cannot be copied" ctl b clone "$dir/saved"
! grep -q '^process.cloned ' "$dir/faults" || fail "processes were restored for a copy that is refused"
[ -z "$(processesOfRun ipc-memory)" ] || fail "processes of a refused copy are left"
ctl b resume --wait "$dir/saved" >"$dir/resume.log" 2>&1 &
runner=$!
waitUntil hasState b "$pid" running
: >"$dir/pause.go"
code=0
wait "$runner" || code=$?
[ "$code" = 0 ] || fail "the program returned $code"
says shares 'ipc-memory: ok' || fail "the program was wrong"
stopNode a
stopNode b
