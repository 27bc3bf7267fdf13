# If the worker or the daemon dies while a program's gate is closing, the program gets an error: the call that keeps the gate open waits for
# the worker, and returns when the worker ends.
program=$tree/tests/programs/questions
[ -x "$program" ] || skip "no $program"
export VGPU_FAULT_LOG=$dir/faults
wasHit() { grep -qs "^$1 " "$dir/faults"; }

# closing NODE: starts a suspend whose gate cannot close, because the worker is stopped.
closing() {
  rm -f "$dir/faults" "$dir/program.log"
  ctl "$1" run -- "$program" 1000 >"$dir/program.log" 2>&1 &
  runner=$!
  waitUntil says program 'questions: running'
  worker=$(field "$1" questions workerPid)
  stopProcess "$worker"
  ctl "$1" suspend questions --to "$dir/x" >"$dir/suspend.log" 2>&1 &
  suspend=$!
  waitUntil wasHit program.gate-closing
}

startNode a
for round in 1 2 3; do
  closing a
  sleep 0.2
  kill -KILL "$worker"
  wait "$suspend" && fail "a suspend without a worker succeeded"
  waitUntil ended "$runner"
  says program 'has lost its GPU: its vgpu-worker was killed' || fail "the program was not told why"
done

startNode b
closing b
sleep 0.2
kill -KILL "${daemon[b]}"
waitUntil ended "$runner"
says program 'has lost its GPU' || says program 'waits 300 s' || fail "the program was not told why"
