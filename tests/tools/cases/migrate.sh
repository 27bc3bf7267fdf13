# A program that works without a pause migrates between two nodes; no call is lost, whatever fails during a migration. VGPU_MOVES: number of
# migrations (default 4).
program=$tree/tests/programs/steady
[ -x "$program" ] || fail "there is no $program"

noRenewals() { [ -z "$(ls "$dir/$1/renewals" 2>/dev/null)" ]; }
nothingLeft() { noRenewals "$1" && [ -z "$(workersOn "$1")" ]; }

startNode a
startNode b
LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} "$tree/bin/vgpuctl" --node "unix:$dir/a/vgpud.sock" run --name moving -- \
  "$program" "$dir/end" >"$dir/moving.log" 2>&1 &
mover=$!
waitUntil says moving 'steady: begins'  # it has its memory

refused "no vgpud" ctl a migrate moving --to "$dir/nowhere"
refused "on that node already" ctl a migrate moving --to "$dir/a"
refused "No such session\|no session" ctl a migrate nobody --to "$dir/b"
VGPU_EMULATED=architecture=80 startNode other
refused "migrate it to a node with the same model" ctl a migrate moving --to "$dir/other"
stopNode other
VGPU_EMULATED=memory=16MiB startNode small
refused "for the arriving session: CUDA_ERROR_OUT_OF_MEMORY" ctl a migrate moving --to "$dir/small"
stopNode small

# Two migrations at once: the first is stopped until the second is refused.
worker=$(field a moving workerPid)
stopProcess "$worker"
ctl a migrate moving --to "$dir/b" >"$dir/first.log" 2>&1 &
first=$!
waitUntil says b "is about to arrive"
refused "is being suspended, resumed or migrated already" ctl a migrate moving --to "$dir/b"
kill -CONT "$worker"
wait "$first" || fail "a migration failed because another one was asked for"
succeeds ctl b migrate moving --to "$dir/a"
waitUntil nothingLeft b

from=a to=b
for ((move = 0; move < ${VGPU_MOVES:-4}; ++move)); do
  ctl "$from" migrate moving --to "unix:$dir/$to/vgpud.sock" --json >"$dir/migrate.log" 2>&1 || fail "move $move failed"
  saysRounds migrate
  waitUntil lists "$to" moving
  waitUntil nothingLeft "$from"
  read -r from to <<<"$to $from"
done

# The target is killed in each phase: the program stays on its node. Its worker is stopped, so that the move cannot complete first.
worker=$(field "$from" moving workerPid)
for phase in asked taken; do
  startNode doomed
  stopProcess "$worker"
  ctl "$from" migrate moving --to "$dir/doomed" >"$dir/doomed-migrate.log" 2>&1 &
  migrating=$!
  [ "$phase" = asked ] || waitUntil says doomed 'is about to arrive'
  kill -KILL "${daemon[doomed]}"
  wait "${daemon[doomed]}" 2>/dev/null
  kill -CONT "$worker"
  waitUntil ended "$migrating"
  wait "$migrating" && fail "a migration to a node that was killed succeeded"
  rm -rf "$dir/doomed"
  hasState "$from" moving running || fail "the program does not run where it was"
done
VGPU_FAULT_POINT=migrate.arriving startNode doomed
ctl "$from" migrate moving --to "$dir/doomed" >"$dir/doomed-migrate.log" 2>&1 && fail "a migration to a node that was killed succeeded"
waitUntil ended "${daemon[doomed]}"
waitUntil hasState "$from" moving running

# The caller gives up: so does the migration, unless it has ended before.
ctl "$from" migrate moving --to "$dir/$to" >"$dir/cancelled.log" 2>&1 &
cancelled=$!
for client in $(processesOfRun vgpuctl); do tr '\0' ' ' <"/proc/$client/cmdline" | grep -q ' migrate ' && kill -TERM "$client"; done
waitUntil ended "$cancelled"

touch "$dir/end"
waitUntil ended "$mover"
wait "$mover" || fail "the program that moved returned $?"

# The program is killed during the migration: nothing of it is left on either node.
export VGPU_FAULT_LOG=$dir/faults
VGPU_FAULT_POINT=migrate.arriving:stop startNode standing
startContents "$from" short 1
ctl "$from" migrate short --to "$dir/standing" >"$dir/short-migrate.log" 2>&1 &
migrating=$!
waitUntil grep -qs '^migrate.arriving .* stop$' "$dir/faults"
kill -KILL "$(pidOf short)"
waitUntil ended "${runner[short]}"
letGo "${daemon[standing]}"
waitUntil ended "$migrating"
wait "$migrating" && fail "a program that was killed has moved"
waitUntil nothingLeft "$from"
waitUntil nothingLeft standing
stopNode standing

# The source's worker does not reply any more: the program goes on where it is, and nothing is left at the target.
rm -f "$dir/faults"
VGPU_FAULT_POINT=migrate.sent-ahead:stop startNode from
startContents from silent 8
worker=$(field from silent workerPid)
ctl from migrate silent --to "$dir/b" --timeout 1 >"$dir/silent-migrate.log" 2>&1 &
migrating=$!
waitUntil grep -qs '^migrate.sent-ahead .* stop$' "$dir/faults"
stopProcess "$worker"
letGo "${daemon[from]}"
wait "$migrating" && fail "a session has moved whose worker is stopped"
says silent-migrate "the vgpu-worker (pid $worker) did not answer in [0-9]* s. The program goes on" || fail "it does not say why"
hasState from silent running || fail "the program is $(field from silent state)"
kill -CONT "$worker"
memoryIsRight silent
stillWorks from silent
waitUntil nothingLeft b
waitUntil noRenewals from
VGPU_PROGRESS=1 succeeds ctl from migrate silent --to "$dir/b"
says succeeds "migrate: round 1 .* of " || fail "it does not say which round it sends"
memoryIsRight silent
endContents silent
