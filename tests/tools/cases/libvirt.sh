# A virtual machine of libvirt, whose programs share memory with the host, is migrated by `virsh migrate`, live or not, and saved and
# restored by `virsh save`, `restore` and `managedsave`, while they work. libvirt's hook migrates or saves their sessions with it. If
# libvirt fails or is cancelled, machine and sessions stay as they were.
# shellcheck source=../../guest/guest.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../guest/guest.sh"
# shellcheck source=../../guest/two-hosts.sh
source "$guests/two-hosts.sh"
# shellcheck source=../../guest/libvirt.sh
source "$guests/libvirt.sh"
needLibvirt
makeImage steady
for host in a b; do
  memory[$host]=$(guestFolder $host)
  nodeOptions[$host]="--guest vm=${memory[$host]}/vm,512MiB"
done
makeGuestHosts
makeLibvirts

defineMachine "vgpu.node=ivshmem:" "<shmem name='vm' role='master'><model type='ivshmem-plain'/><size unit='M'>512</size></shmem>"
machineIsOn a
onLibvirt a start vm >/dev/null || fail "libvirt does not start the machine"
waitUntil says vm "guest: ready"
inGuest vm "vgpuctl run --name steady -- /bin/steady /tmp/end &"
waitUntil says vm 'steady: begins'

# There and back, which reveals a second `migrate-continue`.
for _ in 1 2; do
  moves a b --live || fail "virsh migrate returned $?"
  isOn b a steady
  moves b a --live || fail "virsh migrate returned $?"
  isOn a b steady
done

# Cancelled during the migration.
moves a b --live --bandwidth 4 >"$dir/aborted.log" 2>&1 &
moving=$!
sends() { onLibvirt a domjobinfo vm 2>/dev/null | grep -q "^Data processed: *[1-9]"; }
waitUntil sends
succeeds onLibvirt a domjobabort vm
wait "$moving" && fail "a migration that was given up has come to its end"
waitUntil followerSays a "and all of its sessions stay: its migration was cancelled"
isOn a b steady

# Saved to a full disk after it was paused: it stays paused.
refused "No space left on device" onLibvirt a save vm /dev/full
# The reported reason depends on how far libvirt came.
saysTwice() { [ "$(grep -c "'vm' and all of its sessions stay" "$dir/follower-a.log")" = 2 ]; }
waitUntil saysTwice
isOn a b steady
succeeds onLibvirt a suspend vm
refused "canceled" onLibvirt a save vm "$dir/paused"
[ "$(onLibvirt a domstate vm)" = paused ] || fail "a machine that was paused is $(onLibvirt a domstate vm) after a save that failed"
followerSays a "it was stopped before it was saved" || fail "the hook does not say why a paused machine is not saved"
succeeds onLibvirt a resume vm
isOn a b steady
isEmpty "$dir/saves-a" || fail "a save that failed has left its sessions' folder"

# Saved and restored, also with a file that libvirt manages itself. Their node has no record of the sessions meanwhile.
isSaved() { [ -e "$dir/saves-a/vm/sessions.json" ] && listsNot a steady; }
succeeds onLibvirt a save vm "$dir/saved"
waitUntil isSaved
succeeds onLibvirt a restore "$dir/saved"
isOn a b steady
succeeds onLibvirt a managedsave vm
waitUntil isSaved
# If its sessions cannot be restored, the machine cannot either, until they can.
mv "$dir/saves-a/vm/sessions.json" "$dir/list"
refused "the sessions of .vm. cannot come back" onLibvirt a start vm
mv "$dir/list" "$dir/saves-a/vm/sessions.json"
succeeds onLibvirt a start vm
isOn a b steady

# Sessions that were suspended explicitly are left alone.
succeeds ctl a suspend steady --to "$dir/steady"
succeeds onLibvirt a save vm "$dir/alone"
waitUntil followerSays a "it has no running sessions"
isEmpty "$dir/saves-a" || fail "a machine was saved without sessions, and would come back with others"
succeeds onLibvirt a restore "$dir/alone"
succeeds ctl a attach vm
succeeds ctl a resume "$dir/steady"
isOn a b steady

# Without --live libvirt pauses the machine before the migration. It has one follower, however often libvirt is restarted.
restartLibvirt a
isFollowedOnce() { [ "$(followers a | wc -l)" = 1 ]; }
waitUntil isFollowedOnce
moves a b || fail "virsh migrate without --live returned $?"
isOn b a steady

machineIsOn b
guestReturns vm "touch /tmp/end; wait"
says vm 'steady: ok' || fail "the program has not said that its answer is right"

# Without a follower, by vgpuctl: a QEMU started by libvirt ends if it is asked to execute a shell.
isFollowedNoMore() { [ -z "$(followers b)" ]; }
# shellcheck disable=SC2046
kill $(followers b)
waitUntil isFollowedNoMore
succeeds ctl b machine save --qmp "$dir/libvirt-b/run/vgpu/vm.qmp" "$dir/machine"
[ -s "$dir/machine/machine" ] || fail "the machine is not in its folder"
waitUntil hasEnded b
