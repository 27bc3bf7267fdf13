# A virtual machine of libvirt, whose programs share memory with the host, is moved by `virsh migrate`, live or not, and goes to disk and
# comes back by `virsh save`, `restore` and `managedsave`, while they work. libvirt's hook has their sessions go along. What libvirt
# cannot do, or somebody has it give up, leaves machine and sessions as they were.
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

# There and back, so that whoever lets QEMU go on a second time is found.
for _ in 1 2; do
  moves a b --live || fail "virsh migrate returned $?"
  isOn b a steady
  moves b a --live || fail "virsh migrate returned $?"
  isOn a b steady
done

# Given up on the way.
moves a b --live --bandwidth 4 >"$dir/aborted.log" 2>&1 &
moving=$!
sends() { onLibvirt a domjobinfo vm 2>/dev/null | grep -q "^Data processed: *[1-9]"; }
waitUntil sends
succeeds onLibvirt a domjobabort vm
wait "$moving" && fail "a migration that was given up has come to its end"
waitUntil followerSays a "and all of its sessions stay: its migration was cancelled"
isOn a b steady

# To a disk that is full, and paused before by somebody: it stays as it was.
refused "No space left on device" onLibvirt a save vm /dev/full
# What it says depends on how far libvirt came.
saysTwice() { [ "$(grep -c "'vm' stays, and all of its sessions" "$dir/follower-a.log")" = 2 ]; }
waitUntil saysTwice
isOn a b steady
succeeds onLibvirt a suspend vm
refused "canceled" onLibvirt a save vm "$dir/paused"
[ "$(onLibvirt a domstate vm)" = paused ] || fail "a machine that was paused is $(onLibvirt a domstate vm) after a save that failed"
followerSays a "it was stopped before it was saved" || fail "the hook does not say why a paused machine is not saved"
succeeds onLibvirt a resume vm
isOn a b steady
isEmpty "$dir/saves-a" || fail "a save that failed has left its sessions' folder"

# To disk and back, and so that libvirt has the file itself. Their node has forgotten them meanwhile.
isSaved() { [ -e "$dir/saves-a/vm/sessions.json" ] && listsNot a steady; }
succeeds onLibvirt a save vm "$dir/saved"
waitUntil isSaved
succeeds onLibvirt a restore "$dir/saved"
isOn a b steady
succeeds onLibvirt a managedsave vm
waitUntil isSaved
# Its sessions cannot come back: nor can it, until they can.
mv "$dir/saves-a/vm/sessions.json" "$dir/list"
refused "the sessions of .vm. cannot come back" onLibvirt a start vm
mv "$dir/list" "$dir/saves-a/vm/sessions.json"
succeeds onLibvirt a start vm
isOn a b steady

# Sessions that somebody has suspended are left alone.
succeeds ctl a suspend steady --to "$dir/steady"
succeeds onLibvirt a save vm "$dir/alone"
waitUntil followerSays a "it has no running sessions"
isEmpty "$dir/saves-a" || fail "a machine was saved without sessions, and would come back with others"
succeeds onLibvirt a restore "$dir/alone"
succeeds ctl a attach vm
succeeds ctl a resume "$dir/steady"
isOn a b steady

# Without --live libvirt stops it before it begins. It is followed once, however often libvirt is started again.
restartLibvirt a
isFollowedOnce() { [ "$(followers a | wc -l)" = 1 ]; }
waitUntil isFollowedOnce
moves a b || fail "virsh migrate without --live returned $?"
isOn b a steady

machineIsOn b
guestReturns vm "touch /tmp/end; wait"
says vm 'steady: ok' || fail "the program has not said that its answer is right"

# By vgpuctl, if nobody follows it: a QEMU that libvirt has started ends if it is to execute a shell.
isFollowedNoMore() { [ -z "$(followers b)" ]; }
# shellcheck disable=SC2046
kill $(followers b)
waitUntil isFollowedNoMore
succeeds ctl b machine save --qmp "$dir/libvirt-b/run/vgpu/vm.qmp" "$dir/machine"
[ -s "$dir/machine/machine" ] || fail "the machine is not in its folder"
waitUntil hasEnded b
