# A virtual machine whose programs reach the host through an ivshmem device migrates between two hosts, each with its own shared memory,
# while they launch kernels: their sessions migrate too, and no call is lost or repeated. If the migration fails or is cancelled, or the
# target does not take the sessions, machine and sessions stay.
# shellcheck source=../../guest/guest.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../guest/guest.sh"
# shellcheck source=../../guest/two-hosts.sh
source "$guests/two-hosts.sh"
makeImage steady vector-add
declare -A memory=() nodeOptions=()
for host in a b; do
  memory[$host]=$(guestFolder $host)/memory
  nodeOptions[$host]="--guest vm=${memory[$host]},512MiB"
done
makeGuestHosts
port=4444
onHostOf() { inNamespace=(ip netns exec "${hosts[$([ "$1" = a ] && echo 0 || echo 1)]}"); }
device() { echo -object "memory-backend-file,id=vgpu,mem-path=${memory[$1]},size=512M,share=on" -device ivshmem-plain,memdev=vgpu,master=on; }
# waits NAME: starts a machine on host b that waits for a guest's state.
waits() {
  onHostOf b
  # shellcheck disable=SC2046
  startMachine "$1" "" $(device b) -incoming defer
  qmp "$1" migrate-incoming "{\"uri\": \"tcp:$hostB:$port\"}" >/dev/null || fail "the machine $1 does not listen"
}
follow() { ctl a machine follow --qmp "$dir/first.qmp" --to "${address[b]}" --uri "tcp:$hostB:$port" "$@"; }
follows() {
  qmp first migrate-set-parameters "{\"max-bandwidth\": $1}" >/dev/null
  follow >"$dir/follow.log" 2>&1 &
  following=$!
}
bandwidthIs() { qmp first query-migrate-parameters | grep -q "\"max-bandwidth\": $1,"; }
programs=(one two)
launches() { ctl "$1" ps --json | python3 -c 'import json, sys; print(*[s["launches"]["all"] for s in sorted(json.load(sys.stdin), key=lambda s: s["name"])])'; }
launchesMore() {
  local now=() before=("${@:2}") i
  read -ra now < <(launches "$1")
  [ ${#now[@]} = ${#programs[@]} ] || return 1
  for i in "${!programs[@]}"; do [ "${now[$i]}" -gt "${before[$i]:-0}" ] || return 1; done
}
# works NODE: requires that all programs launch kernels on that node.
works() {
  local before=()
  read -ra before < <(launches "$1")
  waitUntil launchesMore "$1" "${before[@]}"
}
# stays WHY: the background command must report this reason, and the machine and its programs must go on where they were.
stays() {
  local code=0 name
  waitUntil ended "$following"
  wait "$following" || code=$?
  [ "$code" = 1 ] || fail "machine follow returned $code"
  grep -q "$1" "$dir/follow.log" || fail "machine follow did not say '$1'"
  waitUntil machineIs first running
  for name in "${programs[@]}"; do
    waitUntil hasState a "$name" running
    waitUntil listsNot b "$name"
  done
  works a
}

onHostOf a
# shellcheck disable=SC2046
startMachine first "vgpu.node=ivshmem:" $(device a)
waitUntil says first "guest: ready"
for name in "${programs[@]}"; do inGuest first "vgpuctl run --name $name -- /bin/steady /tmp/end &"; done
begin() { [ "$(grep -c 'steady: begins' "$dir/first.log")" = ${#programs[@]} ]; }
waitUntil begin

# Refused before the machine migrates: no such guest at the target, shared memory of another size, and migrating a session alone.
startHostNode plain "$hostB"
startHostNode small "$hostB" --guest "vm=$(guestFolder small)/memory,256MiB"
refused "does not serve that guest: start it with --guest vm=FILE" ctl a machine follow --qmp "$dir/first.qmp" --to "${address[plain]}" --uri "tcp:$hostB:$port"
refused "give both the same size" ctl a machine follow --qmp "$dir/first.qmp" --to "${address[small]}" --uri "tcp:$hostB:$port"
refused "it moves to another host with that machine" ctl a migrate one --to "${address[b]}"

# Cancelled while memory is sent ahead; then the target's QEMU is killed when the programs are held.
waits lost
follows 300000
waitUntil migrationIs first active
qmp first migrate_cancel >/dev/null
stays "its migration was cancelled"
waitUntil ended "${machine[lost]}"
waits lost
follows 20000000
waitUntil bandwidthIs 100
waitUntil bandwidthIs 20000000
kill -KILL "${machine[lost]}"
wait "${machine[lost]}" 2>/dev/null
stays "and all of its sessions stay"

# It migrates, and a program that is started while the others are held begins at the target. The migration is slow enough that the shared
# memory is sent before they are held: what kernels write to pinned memory afterwards must be sent again.
waits second
export VGPU_FAULT_LOG=$dir/faults
VGPU_FAULT_POINT=machine.held:stop follows 100000000
stopped() { awk '$1 == "machine.held" { print $3 }' "$dir/faults"; }
isStopped() { [ -s "$dir/faults" ] && stands "$(stopped)"; }
waitUntil isStopped
inGuest first "vgpuctl run --name late -- /bin/vector-add 1000 &"
asks() { [ "$(ls "$dir/a/guests/vm" | wc -l)" = 3 ]; }
waitUntil asks
kill -CONT "$(stopped)"
waitUntil ended "$following"
wait "$following" || fail "machine follow returned $?"
cat "$dir/follow.log"
for name in "${programs[@]}"; do
  grep -q "($name) runs on emulated 0 of ${address[b]}" "$dir/follow.log" || fail "machine follow does not say where $name is"
  hasState b "$name" running || fail "$name is $(field b "$name" state) at the target"
done
listsNone() { [ -z "$(ctl a ps --json | tr -d '[] \n')" ]; }
waitUntil listsNone
machineIs second running || fail "the machine does not run at its target"
endMachine first
works b
waitUntil says second 'vector-add: ok'
guestReturns second "touch /tmp/end; wait"
[ "$(grep -c 'steady: ok' "$dir/second.log")" = ${#programs[@]} ] || fail "the programs have not said that their answers are right"
endMachine second
