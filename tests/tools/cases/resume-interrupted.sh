# A resume that is interrupted before daemon and program have both taken the session leaves it to be resumed again: the worker
# that has restored it has consumed none of its pending calls.
program=$tree/tests/programs/queue-tail
[ -x "$program" ] || skip "no $program"
export VGPU_FAULT_LOG=$dir/faults
# wasHit NAME [ACTION]: whether a process came to a fault point.
wasHit() { grep -qs "^$1 .* ${2:-[a-z]*}$" "$dir/faults"; }
stands() { grep -q '^State:[[:space:]]*T' "/proc/$1/status" 2>/dev/null; }

# suspended NAME: the program, with two thousand launches behind it of which most are pending, suspended to $dir/NAME.
# suspended NAME; finished: its end must be right.
startNode a
suspended() {
  rm -f "$dir"/pause.*
  VGPU_PAUSE_FILE=$dir/pause ctl a run -- "$program" 100000 >"$dir/program.log" 2>&1 &
  runner=$!
  waitUntil test -e "$dir/pause.reached"
  read -r pid <"$dir/pause.reached"
  succeeds ctl a suspend "$pid" --to "$dir/$1"
  grep -q ' 0 waiting calls' "$dir/succeeds.log" && fail "no call is pending: this tests nothing"
}
finished() {
  : >"$dir/pause.go"
  wait "$runner" || fail "the program returned $?"
  says program 'queue-tail: ok' || fail "the program was wrong"
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
for worker in $(processes vgpu-worker); do stands "$worker" && break; done
kill -STOP "${daemon[c]}"
waitUntil stands "${daemon[c]}"
kill -CONT "$worker"
sleep 0.5
for client in $(processes vgpuctl); do tr '\0' ' ' <"/proc/$client/cmdline" | grep -q ' resume ' && kill -KILL "$client"; done
kill -CONT "${daemon[c]}"
wait "$resume" && fail "a resume without its caller succeeded"
# What the daemon sees first decides: the caller's end, or that the program has accepted.
isSettled() { ended "$worker" || hasState c "$pid" running; }
waitUntil isSettled
ended "$worker" && succeeds ctl a resume "$dir/client"
finished
stopNode c
