# A machine whose programs share memory with its host fails to migrate: whichever process ends while the programs are held, everything stays
# where it was, and a program that was started meanwhile runs there too. (tests/guest/machine-double; guest-ivshmem-migration.sh migrates
# real machines.)
# shellcheck source=../../guest/double.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../guest/double.sh"
[ -x "$tree/tests/programs/vector-add" ] || skip "no program vector-add"
there=$(guestFolder there)/memory
startNode a --guest "one=$memory,512MiB"
startTarget() { startNode b --guest "one=$there,512MiB"; }
startTarget
startDoubleMachine here

# follows [POINT:ACTION]: starts a follower in the background, which begins a migration.
follows() {
  local variables=()
  [ $# = 0 ] || variables=("VGPU_FAULT_POINT=$1")
  rm -f "$dir/faults"
  env "${variables[@]}" "$tree/bin/vgpuctl" --node "unix:$dir/a/vgpud.sock" machine follow --qmp "$dir/here.qmp" --to "$dir/b" \
    --uri tcp:elsewhere:1 --json >"$dir/follow.log" 2>&1 &
  following=$!
}
reached() { grep -qs "^$1 " "$dir/faults"; }
# stopsAt POINT: the follower has reached this fault point and is stopped there.
stopsAt() {
  follows "$1:stop"
  waitUntil reached "$1"
  waitUntil stands "$following"
}
runsAt() { hasState "$1" kept running && [ -n "$(field "$1" kept workerPid)" ]; }
# stays PATTERN: the command must report it, and the program must run where it was.
stays() {
  local code=0
  waitUntil ended "$following"
  wait "$following" || code=$?
  [ "$code" = 1 ] || fail "machine follow returned $code"
  grep -q "$1" "$dir/follow.log" || fail "machine follow did not say '$1'"
  isBack
}
isBack() {
  waitUntil runsAt a
  waitUntil listsNot b kept
  memoryIsRight kept
}

saidNotReady() { grep -c 'is no longer ready at' "$dir/a.log"; }
saysNotReady() { [ "$(saidNotReady)" -gt "$notReady" ]; }

# No program exists when the migration begins. One that starts during it is held with the machine; one that starts too late for that,
# because nobody knows that its node's guest is this machine, keeps the machine here.
qmp here x-left '{"bytes": 1000000000000}' >/dev/null
follows
waitUntil migrationIs here active
startInMachine kept 16
waitUntil says kept ready
qmp here x-left '{"bytes": 0}' >/dev/null
stays "the double was told to fail"
grep -q '"name": "kept"' "$dir/follow.log" || fail "a program that began on the way was not to go along"
endContents kept
waitUntil listsNot a kept
stopsAt machine.held
startInMachine kept 16
waitUntil says kept ready
kill -CONT "$following"
stays "stopped before its programs could be held"

# The target's worker for the session ends: while the programs are held, and while the machine is paused.
for point in machine.held machine.handing-over; do
  stopsAt $point
  notReady=$(saidNotReady)
  kill -KILL $(pgrep -P "${daemon[b]}" vgpu-worker)
  waitUntil saysNotReady
  kill -CONT "$following"
  stays "cannot move: .*vgpu-worker"
  stopsAt $point
  notReady=$(saidNotReady)
  killNode b
  waitUntil saysNotReady
  kill -CONT "$following"
  stays "cannot move"
  wait "${daemon[b]}" 2>/dev/null
  startTarget
done
stopNode b
VGPU_FAULT_POINT=machine.restoring startTarget
follows
waitUntil ended "${daemon[b]}"
stays "problem"
startTarget

# A program that starts while the others are held waits, and runs here when the machine stays.
stopsAt machine.held
inMachine --name late -- "$tree/tests/programs/vector-add" 1000 >"$dir/late.log" 2>&1 &
late=$!
asks() { [ "$(ls "$dir/a/guests/one" | wc -l)" = 2 ]; }
waitUntil asks
sleep 0.3
listsNot a late || fail "a program of a machine that is about to move got a session"
kill -CONT "$following"
stays "the double was told to fail"
code=0
wait "$late" || code=$?
[ "$code" = 0 ] || fail "the program that began meanwhile returned $code: $(cat "$dir/late.log")"

# The migration is completed at the target, but the machine is continued here: so are its programs.
afterHandover here runs-here
follows
stays "runs on its source host again"
# vgpuctl is killed: the same, after the migration is cancelled.
for point in machine.held machine.handing-over machine.moved; do
  follows "$point"
  waitUntil ended "$following"
  reached "$point" || fail "machine follow did not come to $point"
  [ "$point" = machine.moved ] || qmp here migrate_cancel >/dev/null
  qmp here migrate-set-parameters '{"max-bandwidth": 134217728, "downtime-limit": 300}' >/dev/null
  qmp here migrate-set-capabilities '{"capabilities": [{"capability": "pause-before-switchover", "state": false}]}' >/dev/null
  isBack
done
afterHandover here failed

follows
stays "the double was told to fail"
allReached machine.restoring machine.ready machine.held machine.handing-over
endMachine here
endContents kept
stopNode a
stopNode b
