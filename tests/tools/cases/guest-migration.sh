# A virtual machine migrates between two hosts while its program launches kernels: the program's session migrates too, and no call is lost
# or repeated. If the machine's migration fails or is cancelled, or the target does not take the session, everything stays.
# shellcheck source=../../guest/guest.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../guest/guest.sh"
# shellcheck source=../../guest/two-hosts.sh
source "$guests/two-hosts.sh"
makeImage steady
makeGuestHosts
port=4444
follow() { ctl a machine follow --qmp "$dir/first.qmp" "$@"; }
# stays WHY: the background command must report this reason, and the guest and its session must be where they were.
stays() {
  local code=0
  waitUntil ended "$following"
  wait "$following" || code=$?
  [ "$code" = 1 ] || fail "machine follow returned $code"
  grep -q "$1" "$dir/follow.log" || fail "machine follow did not say '$1'"
  waitUntil machineIs first running
  waitUntil hasState a steady running
  waitUntil listsNot b steady
}
# begins URI: follows a migration that takes long.
begins() {
  qmp first migrate-set-parameters '{"max-bandwidth": 300000}' >/dev/null
  follow --to "${address[b]}" --uri "$1" >"$dir/follow.log" 2>&1 &
  following=$!
  waitUntil migrationIs first active
}

holdsHandover() { qmp first query-migrate-capabilities | grep -q '"state": true, "capability": "pause-before-switchover"'; }

startHostGuest first
inGuest first "vgpuctl run --name steady -- /bin/steady /tmp/end &"
waitUntil says first 'steady: begins'

# Refused before the machine migrates.
refused "no QEMU answers at" ctl a machine follow --qmp "$dir/none.qmp" --to "${address[b]}"
refused "not a QMP socket\|closed the connection" ctl a machine follow --qmp "$dir/a/vgpud.sock" --to "${address[b]}"
refused "is 'first', not 'other'" follow --vm other --to "${address[b]}"
refused "no session 'nobody'" follow --session nobody --to "${address[b]}" --uri "tcp:$hostB:$port"
refused "nothing answers at" follow --to "tcp:$hostB:1" --uri "tcp:$hostB:$port"
# A node of another architecture, also on host b.
VGPU_EMULATED=architecture=80 startHostNode other "$hostB"
refused "migrate it to a node with the same model" follow --to "${address[other]}" --uri "tcp:$hostB:$port"
hasState a steady running || fail "the session is $(field a steady state) after refusals"

# No QEMU waits at the target; the migration is cancelled; the target's QEMU is killed during it.
follow --to "${address[b]}" --uri "tcp:$hostB:$port" >"$dir/follow.log" 2>&1 &
following=$!
stays "Connection refused"
startIncoming lost b "tcp:$hostB:$port"
begins "tcp:$hostB:$port"
refused "no greeting" follow --to "${address[b]}"  # two followers at once
qmp first migrate_cancel >/dev/null
stays "its migration was cancelled"
waitUntil ended "${machine[lost]}"
startIncoming lost b "tcp:$hostB:$port"
begins "tcp:$hostB:$port"
kill -KILL "${machine[lost]}"
wait "${machine[lost]}" 2>/dev/null
stays "and all of its sessions stay"

# It migrates: libvirt's hook follows, and somebody else starts the migration.
hook() { echo "<domain type='qemu'><name>$1</name></domain>" | "$tree/lib/vgpu/libvirt-hook" "$@" 2>"$dir/hook.log"; }
export VGPU_MACHINES=$dir/machines
for name in first lost; do echo "$name unix:$dir/$([ $name = first ] && echo a)/vgpud.sock ${address[b]} $dir/$name.qmp"; done >"$VGPU_MACHINES"
[ -z "$(hook first migrate begin -)" ] || fail "the hook has printed what libvirt takes for XML"
hook other migrate begin - || fail "the hook refuses a machine that is not listed"
hook lost migrate begin - && fail "the hook lets a machine come to a host without a vgpud"
grep -q "no vgpud answers" "$dir/hook.log" || fail "the hook does not say why"
echo "first unix:$dir/a/vgpud.sock" >"$dir/bad-machines"
VGPU_MACHINES=$dir/bad-machines hook first started begin - && fail "the hook takes a line that is none"
grep -q "line 1: expected NAME NODE TARGET QMP" "$dir/hook.log" || fail "the hook does not say which line is wrong"
hook first started begin - || fail "the hook returned $?"
qmp first migrate-set-parameters '{"max-bandwidth": 1000000000}' >/dev/null
startIncoming second b "tcp:$hostB:$port"
waitUntil holdsHandover
qmp first migrate "{\"uri\": \"tcp:$hostB:$port\"}" >/dev/null
waitUntil machineIs second running
guestIsOn b
waitUntil says machine-first "'first' has moved with 1 sessions"
waitUntil says machine-first "(steady) runs on emulated 0 of ${address[b]}"
hasState b steady running || fail "the session is $(field b steady state) at the target"
waitUntil listsNot a steady
endMachine first
sleep 0.5
endSteady second
endMachine second
