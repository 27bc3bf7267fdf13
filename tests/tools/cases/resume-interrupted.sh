# A resume that is interrupted before both daemon and program have taken over the session can be repeated: the worker that has restored the
# session has consumed none of its pending calls.
program=$tree/tests/programs/backlog
[ -x "$program" ] || skip "no $program"
export VGPU_FAULT_LOG=$dir/faults
# wasHit NAME [ACTION]: whether a process has reached a fault point.
wasHit() { grep -qs "^$1 .* ${2:-[a-z]*}$" "$dir/faults"; }
# Whether a worker is stopped; sets `worker` to it.
aWorkerStands() {
  for worker in $(processesOfRun vgpu-worker); do stands "$worker" && return; done
  return 1
}

# suspended NAME: starts the program and suspends it to $dir/NAME with pending calls: its worker is stopped while they are posted, and must
# stop consuming before it has reached all of them. finished: the program must end with the right result.
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
sleep 0.5  # for everything that the worker would do by itself
kill -KILL "${daemon[b]}"
wait "$resume" && fail "a resume without its daemon succeeded"
succeeds ctl a resume "$dir/daemon"
finished

# Its caller is killed while the daemon is busy; the worker's reply arrives before the daemon notices.
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
# The event that the daemon notices first decides: the caller's end, or the program's acceptance.
isSettled() { ended "$worker" || hasState c "$pid" running; }
waitUntil isSettled
ended "$worker" && succeeds ctl a resume "$dir/client"
finished
stopNode c
