# Snapshots of a program that goes on: its memory is copied while it runs; a later suspend writes only changes since then.
export VGPU_STORE=$dir/store VGPU_FAULT_LOG=$dir/faults
wasHit() { grep -qs "^$1 .* ${2:-[a-z]*}$" "$dir/faults"; }
field_of() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1" <"$dir/report.log"; }

startNode a
startContents a one 24
ctl a snapshot one --name live --json >"$dir/report.log" 2>"$dir/refused.log" || fail "no snapshot: $(cat "$dir/refused.log")"
hasState a one running || fail "the program is $(field a one state)"
[ "$(field_of rounds)" -ge 1 ] || fail "$(field_of rounds) rounds"
[ "$(field_of roundBytes)" -ge $((24 << 20)) ] || fail "$(field_of roundBytes) bytes were copied while it ran"
[ "$(field_of heldBytes)" -lt $((4 << 20)) ] || fail "$(field_of heldBytes) bytes changed, where next to nothing does"
succeeds ctl a snapshots verify live
succeeds ctl a snapshots show live
refused "is not suspended: its program" ctl a resume live
memoryIsRight one

# To a directory; it reports its steps.
succeeds ctl a snapshot one --to "$dir/beside"
grep -q "rounds while it ran" "$dir/succeeds.log" || fail "it does not say what it did"
succeeds ctl a inspect "$dir/beside"
refused "No such session\|no session" ctl a snapshot nobody
refused "is not empty" ctl a snapshot one --to "$dir/beside"

# A suspend writes only what changes afterwards.
tell one change changed
written=$(storedBytes ctl a suspend one --name later)
[ "$written" -lt $((6 << 20)) ] || fail "2 MiB changed since the snapshot, and the suspend wrote $written bytes"
refused "is not running, so there is nothing to save" ctl a snapshot one
succeeds ctl a resume later
memoryIsRight one
endContents one

# The worker stops replying: the program goes on, and no files are left.
rm -f "$dir/faults"
VGPU_FAULT_POINT=snapshot.gate-closed:stop startNode c
startContents c silent 8
worker=$(field c silent workerPid)
ctl c snapshot silent --name silent --timeout 1 >"$dir/silent-snapshot.log" 2>&1 &
snapshot=$!
waitUntil wasHit snapshot.gate-closed stop
stopProcess "$worker"
letGo "${daemon[c]}"
wait "$snapshot" && fail "a snapshot was made of a session whose worker is stopped"
says silent-snapshot "the vgpu-worker (pid $worker) did not answer in [0-9]* s. The program goes on" || fail "it does not say why"
hasState c silent running || fail "the program is $(field c silent state)"
kill -CONT "$worker"
waitUntil isGone "$VGPU_STORE/snapshots/silent"
memoryIsRight silent
stillWorks c silent
endContents silent
stopNode c

# Interrupted at each step: the program goes on, and nothing of the snapshot is left.
for point in snapshot.rounds-done snapshot.captured; do
  rm -f "$dir/faults"
  VGPU_FAULT_POINT=$point:stop startNode b
  startContents b "at-$point" 24
  ctl b snapshot "at-$point" --name gone >"$dir/snapshot.log" 2>&1 &
  waitUntil wasHit "$point" stop
  worker=$(field b "at-$point" workerPid)
  killCommands b snapshot
  letGo "$worker"
  waitUntil isGone "$VGPU_STORE/snapshots/gone"
  memoryIsRight "at-$point"
  stillWorks b "at-$point"
  memoryIsRight "at-$point"
  endContents "at-$point"
  stopNode b
done
