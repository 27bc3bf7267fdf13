# A program that works without a pause migrates between nodes that it reaches only by addresses; no call is lost, whatever fails during a
# migration. VGPU_TRANSPORT: tcp or tls; VGPU_MOVES: number of migrations (default 4).
program=$tree/tests/programs/steady
[ -x "$program" ] || fail "there is no $program"
transport=${VGPU_TRANSPORT:-tcp}
[ "$transport" != tls ] || succeeds "$tree/bin/vgpuctl" keys init

nothingLeft() { [ -z "$(ls "$dir/$1/renewals" "$dir/$1/sessions" "$dir/$1/arrived/sessions" "$dir/$1/relays" 2>/dev/null | grep -v :)" ] && [ -z "$(workersOn "$1")" ]; }
relaysOf() {
  local relay
  for relay in $(processesOfRun vgpu-relay); do
    tr '\0' ' ' 2>/dev/null <"/proc/$relay/cmdline" | grep -q "^vgpu-relay $1 " && echo "$relay"
  done
}
noRelay() { [ -z "$(relaysOf "$1")" ]; }
# newRelay SUCCESSORS: whether there is a relay besides those, which has left the process that started it: it leads its own session
# (proc(5)).
newRelay() {
  made=$(comm -13 <(sort <<<"$1") <(relaysOf successor | sort))
  [ -n "$made" ] && [ "$(cut -d ' ' -f 6 "/proc/$made/stat" 2>/dev/null)" = "$made" ]
}
runs() { hasState "$1" moving running; }

for node in a b; do startNode "$node" --listen "$transport:127.0.0.1:0"; done
declare -A address=([a]=$(addressOf a) [b]=$(addressOf b))
export VGPU_LINK_LIMIT=20
LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} "$tree/bin/vgpuctl" --node "${address[a]}" run --name moving -- \
  "$program" "$dir/end" >"$dir/moving.log" 2>&1 &
runner=$!
waitUntil lists a moving

refused "nothing answers at" at "${address[a]}" migrate moving --to "$transport:127.0.0.1:1"
refused "on that node already" at "${address[a]}" migrate moving --to "${address[a]}"
VGPU_EMULATED=architecture=80 startNode other --listen "$transport:127.0.0.1:0"
refused "migrate it to a node with the same model" at "${address[a]}" migrate moving --to "$(addressOf other)"
stopNode other
# A program that shares memory with its GPU's host migrates to the other node, and then to its own host's node by an address.
LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} "$tree/bin/vgpuctl" --node "unix:$dir/a/vgpud.sock" run --name leaving -- \
  "$program" "$dir/end-of-leaving" >"$dir/leaving.log" 2>&1 &
leaving=$!
waitUntil lists a leaving
succeeds ctl a migrate leaving --to "${address[b]}"
waitUntil hasState b leaving running
succeeds ctl b migrate leaving --to "${address[a]}"
waitUntil hasState a leaving running
touch "$dir/end-of-leaving"
wait "$leaving" || fail "the program that left its host returned $?"
waitUntil noRelay successor

# A node that has given its session away has as many open descriptors after the last migration as after the first.
descriptors() { find "/proc/${daemon[$1]}/fd" -mindepth 1 | wc -l; }
declare -A idle=()
hasFewOpen() { [ "$(descriptors "$1")" -le "${idle[$1]}" ]; }

from=a to=b
for ((move = 0; move < ${VGPU_MOVES:-4}; ++move)); do
  at "${address[$from]}" migrate moving --to "${address[$to]}" --json >"$dir/migrate.log" 2>&1 || fail "move $move failed"
  saysRounds migrate
  waitUntil runs "$to"
  waitUntil nothingLeft "$from"
  waitUntil noRelay tool
  if [ -z "${idle[$from]:-}" ]; then
    sleep 0.5  # for everything that ends with the migration
    idle[$from]=$(descriptors "$from")
  fi
  waitUntil hasFewOpen "$from"
  read -r from to <<<"$to $from"
done

# migratesAtStandstill TARGET LOG: begins a migration while the worker is stopped, so that no memory is sent before goesOn.
migratesAtStandstill() {
  worker=$(field "$from" moving workerPid)
  stopProcess "$worker"
  at "${address[$from]}" migrate moving --to "$1" >"$dir/$2.log" 2>&1 &
  migrating=$!
}
goesOn() { kill -CONT "$worker"; }

# The target ends in each phase: the program stays where it is.
for phase in asked taken; do
  startNode doomed --listen "$transport:127.0.0.1:0"
  migratesAtStandstill "$(addressOf doomed)" doomed-migrate
  [ "$phase" = asked ] || waitUntil says doomed 'is about to arrive'
  kill -KILL "${daemon[doomed]}"
  wait "${daemon[doomed]}" 2>/dev/null
  goesOn
  waitUntil ended "$migrating"
  wait "$migrating" && fail "a migration to a node that was killed succeeded"
  rm -rf "$dir/doomed"
  runs "$from" || fail "the program does not run where it was"
done

# The successor of its relay ends during the migration: the program stays too.
before=$(relaysOf successor)
migratesAtStandstill "${address[$to]}" orphan-migrate
waitUntil newRelay "$before"
kill -KILL "$made"
goesOn
waitUntil ended "$migrating"
wait "$migrating" && fail "a migration succeeded whose program's relay was killed"
runs "$from" || fail "the program does not run where it was"
at "${address[$from]}" migrate moving --to "${address[$to]}" >"$dir/again.log" 2>&1 || fail "it cannot move any more"

touch "$dir/end"
waitUntil ended "$runner"
wait "$runner" || fail "the program that moved returned $?"
waitUntil noRelays
waitUntil nothingLeft a
waitUntil nothingLeft b
