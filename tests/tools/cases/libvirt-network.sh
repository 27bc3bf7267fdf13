# A virtual machine of libvirt, whose programs reach the host by network, is migrated by `virsh migrate`, and saved and restored by `virsh
# save` and `restore`, while they work.
# shellcheck source=../../guest/guest.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../guest/guest.sh"
# shellcheck source=../../guest/two-hosts.sh
source "$guests/two-hosts.sh"
# shellcheck source=../../guest/libvirt.sh
source "$guests/libvirt.sh"
needLibvirt
makeImage steady
for host in a b; do memory[$host]=$(guestFolder $host); done
makeGuestHosts
makeLibvirts
defineMachine "vgpu.address=$guestAddress/24 vgpu.gateway=$guestGateway vgpu.node=${address[a]} vgpu.limit=60" \
  "<interface type='ethernet'><mac address='52:54:00:00:00:01'/><target dev='card0' managed='no'/><model type='virtio'/></interface>"
machineIsOn a
succeeds onLibvirt a start vm
waitUntil says vm "guest: ready"
inGuest vm "vgpuctl run --name steady -- /bin/steady /tmp/end &"
waitUntil says vm 'steady: begins'

moves a b --live &
moving=$!
waitUntil runs b
guestIsOn b
wait "$moving" || fail "virsh migrate returned $?"
waitUntil followerSays a "has moved with 1 sessions"
isOn b a steady

waitUntil isFollowed b
succeeds onLibvirt b save vm "$dir/saved"
waitUntil hasState b steady suspended
succeeds onLibvirt b restore "$dir/saved"
waitUntil followerSays b "runs again"
isOn b a steady
machineIsOn b
guestReturns vm "touch /tmp/end; wait"
says vm 'steady: ok' || fail "the program has not said that its answer is right"
succeeds onLibvirt b destroy vm
