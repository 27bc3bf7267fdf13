# Two hosts and a network of 1 Gbit/s with 1 ms of delay between them: a program of host a works on host b's node, while the link is cut,
# and while packets are reordered; it migrates to its own host's node, and back. At the same time another program copies much data over
# several connections.
# shellcheck source=../../network/two-hosts.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../network/two-hosts.sh"
program=$tree/tests/programs/steady copying=$tree/tests/programs/bulk-copies
for one in "$program" "$copying"; do [ -x "$one" ] || fail "there is no $one"; done
why=$(canMakeHosts) || skip "$why"
makeHosts "$tree/tests/network/delayed-link" 1000 500 || fail "there are no two hosts"
trap 'removeHosts; cleanUp' EXIT
export VGPU_LINK_LIMIT=20

# startHostNode NAME ADDRESS: starts a vgpud on host NAME.
startHostNode() {
  onHost "$1" "$tree/bin/vgpud" --run-dir "$dir/$1" --device emulated --listen "tcp:$2:0" --allow-plain >"$dir/$1.log" 2>&1 &
  daemon[$1]=$!
  waitUntil readyOrEnded "$1"
  says "$1" '^vgpud: ready' || fail "vgpud $1 did not become ready"
}
startHostNode a "$hostA"
startHostNode b "$hostB"
declare -A address=([a]=$(addressOf a) [b]=$(addressOf b))
# fromA NODE COMMAND...: vgpuctl on host a. runsFromA NODE ...: its command run, without a time limit for the program.
runsFromA() { LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} onHost a "$tree/bin/vgpuctl" --node "${address[$1]}" run "${@:2}"; }
fromA() { onHost a timeout "$limit" "$tree/bin/vgpuctl" --node "${address[$1]}" "${@:2}"; }

runsFromA b --name moving -- "$program" "$dir/end" >"$dir/moving.log" 2>&1 &
runner=$!
VGPU_LINK_CONNECTIONS=3 runsFromA b --name copying -- "$copying" "$dir/copied" >"$dir/copying.log" 2>&1 &
copier=$!
waitUntil lists b moving
waitUntil says copying copied
cutLink
sleep 1
hasState b moving running || fail "the session is $(field b moving state) while the link is cut"
joinLink
reorderLink
sleep 1
from=b to=a
for move in 1 2 3; do
  fromA "$from" migrate moving --to "${address[$to]}" >"$dir/migrate.log" 2>&1 || fail "move $move failed"
  waitUntil hasState "$to" moving running
  read -r from to <<<"$to $from"
done
reorderLink

# The link is cut during a migration: the program is at the source or at the target, and works.
fromA "$from" migrate moving --to "${address[$to]}" >"$dir/cut-migrate.log" 2>&1 &
migrating=$!
sleep 0.1
cutLink
sleep 2
joinLink
waitUntil ended "$migrating"
runsAnywhere() { hasState a moving running || hasState b moving running; }
waitUntil runsAnywhere

touch "$dir/copied"
waitUntil ended "$copier"
wait "$copier" || fail "the program that copies returned $?"
touch "$dir/end"
waitUntil ended "$runner"
wait "$runner" || fail "the program returned $?"
waitUntil noRelays
