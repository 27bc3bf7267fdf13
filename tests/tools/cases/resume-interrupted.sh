# A resume that is interrupted before daemon and program have both taken the session leaves it to be resumed again: the worker
# that has restored it has consumed none of its pending calls.
program=$tree/tests/programs/backlog
[ -x "$program" ] || skip "no $program"
export VGPU_FAULT_LOG=$dir/faults
# wasHit NAME [ACTION]: whether a process came to a fault point.
wasHit() { grep -qs "^$1 .* ${2:-[a-z]*}$" "$dir/faults"; }
# Sets `worker`.
aWorkerStands() {
  for worker in $(processesOfRun vgpu-worker); do stands "$worker" && return; done
  return 1
}

# suspended NAME: the program, suspended to $dir/NAME with calls pending: its worker stands still while they are posted, and
# is told to stop consuming before it can come to all of them. finished: the program's end must be right.
startNode a
suspended() {
  rm -f "$dir"/pause.* "$dir/go" "$dir/program.log" "$dir/faults"
  VGPU_PAUSE_FILE=$dir/pause ctl a run -- "$program" "$dir/go" >"$dir/program.log" 2>&1 &
  runner=$!
  waitUntil says program 'backlog: ready'
  pid=$(field a backlog pid) worker=$(field a backlog workerPid)
  stopProcess "$worker"
  touch "$dir/go"
  waitUntil test -e "$dir/pause.reached"
  ctl a suspend "$pid" --to "$dir/$1" >"$dir/suspend.log" 2>&1 &
  local suspend=$!
  waitUntil wasHit suspend.gate-closed
  sleep 0.1
  kill -CONT "$worker"
  wait "$suspend" || fail "the suspend failed"
  grep -q ' 0 waiting calls' "$dir/suspend.log" && skip "the worker came to all calls before it could be stopped"
  return 0
}
finished() {
  : >"$dir/pause.go"
  wait "$runner" || fail "the program returned $?"
  says program 'backlog: ok' || fail "the program was wrong"
}

# The daemon is killed when it knows that the session is restored.
suspended daemon
VGPU_FAULT_POINT=resume.restored:stop startNode b
ctl b resume "$dir/daemon" >"$dir/resume.log" 2>&1 &
resume=$!
waitUntil wasHit resume.restored stop
sleep 0.5  # for the worker to do all that it would do by itself
kill -KILL "${daemon[b]}"
wait "$resume" && fail "a resume without its daemon succeeded"
succeeds ctl a resume "$dir/daemon"
finished

# Its caller is killed while it is busy; the worker's answer is there before it can see that.
suspended client
rm -f "$dir/faults"
VGPU_FAULT_POINT=resume.bytes-restored:stop startNode c
ctl c resume "$dir/client" >"$dir/resume.log" 2>&1 &
resume=$!
waitUntil wasHit resume.bytes-restored stop
waitUntil aWorkerStands
stopProcess "${daemon[c]}"
kill -CONT "$worker"
sleep 0.5
kill -KILL "$(commandsOf resume)"
kill -CONT "${daemon[c]}"
wait "$resume" && fail "a resume without its caller succeeded"
# What the daemon sees first decides: the caller's end, or that the program has accepted.
isSettled() { ended "$worker" || hasState c "$pid" running; }
waitUntil isSettled
ended "$worker" && succeeds ctl a resume "$dir/client"
finished
stopNode c
