# Hosts with a libvirt each, whose hook is ours: to be sourced after two-hosts.sh. A host is a network namespace (two-hosts.sh), and for
# libvirtd, QEMU and what the hook begins also namespaces of processes, mounts and host names: all of these end with the test, although
# libvirt passes no environment on by which it would find them, and both hosts have the same paths: /run, /var and /etc/libvirt are
# $dir/libvirt-a/run, var and etc, and /dev/shm is ${memory[a]}.
# shellcheck shell=bash
declare -A libvirt=() memory=()
uuid=5f1c2d3e-0000-4000-8000-000000000001

needLibvirt() {
  command -v libvirtd >/dev/null && command -v virsh >/dev/null ||
    skip "there is no libvirtd or virsh (Debian: libvirt-daemon, libvirt-daemon-driver-qemu, libvirt-clients)"
}

uriOf() { echo "qemu+unix:///system?socket=$dir/libvirt-$1/run/libvirt/libvirt-sock"; }
# onLibvirt a|b COMMAND...: what virsh replies.
onLibvirt() { timeout "$limit" virsh --quiet --connect "$(uriOf "$1")" "${@:2}"; }
# isFollowed HOST: the machine there has a follower, which has made QEMU ask before a move or a save ends. It has come a moment before.
isFollowed() {
  [[ $(onLibvirt "$1" qemu-monitor-command vm '{"execute": "query-migrate-capabilities"}' 2>/dev/null) == \
    *'"state":true,"capability":"pause-before-switchover"'* ]]
}
libvirtReplies() { onLibvirt "$1" uri >/dev/null 2>&1; }
libvirtRepliesOrEnded() { libvirtReplies "$1" || ended "${libvirt[$1]}"; }

# makeLibvirts: after makeGuestHosts. The hooks move the machine `vm` from each host's node to the other one's, and keep the sessions of one
# that is saved in $dir/saves-a and -b.
makeLibvirts() {
  startLibvirt a "${hosts[0]}" "${address[b]}"
  startLibvirt b "${hosts[1]}" "${address[a]}"
}
startLibvirt() {
  local host=$1 own=$dir/libvirt-$1 number file
  number=$([ "$host" = a ] && echo 1 || echo 2)
  mkdir -p "$own"/{run/vgpu,var/{lib,log,cache},etc/hooks,home/.config/vgpu} "$dir/saves-$host"
  ln -s /run "$own/var/run"
  ln -s "$tree/lib/vgpu/libvirt-hook" "$own/etc/hooks/qemu"
  echo "vm unix:$dir/$host/vgpud.sock $3 /run/vgpu/vm.qmp $dir/saves-$host" >"$own/home/.config/vgpu/machines"
  ln -s "$own/home/.config/vgpu/machine-vm.log" "$dir/follower-$host.log"
  # No machine moves between two that say that they are one host.
  printf '%s\n' 'auth_unix_rw = "none"' 'log_outputs = "4:stderr"' "host_uuid = \"00000000-0000-4000-8000-00000000000$number\"" >"$own/etc/libvirtd.conf"
  printf '%s\n' 'user = "root"' 'group = "root"' 'security_driver = "none"' 'stdio_handler = "file"' 'cgroup_controllers = []' \
    'dynamic_ownership = 0' >"$own/etc/qemu.conf"
  # libvirt begins without this user no machine, and no other one. Debian's libvirt-daemon-system makes it, and services of systemd too.
  for file in passwd group; do cp "/etc/$file" "$own/etc/$file"; done
  grep -q '^libvirt-qemu:' "$own/etc/passwd" || {
    echo 'libvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin' >>"$own/etc/passwd"
    echo 'libvirt-qemu:x:64055:' >>"$own/etc/group"
  }
  # The shell reaps what the hook and libvirtd leave behind: a QEMU that has ended is there for libvirt until somebody has.
  # shellcheck disable=SC2016
  ip netns exec "$2" unshare --mount --uts --pid --fork --kill-child --mount-proc sh -c '
    set -e
    hostname "$1"
    for folder in run var; do mount --bind "$2/$folder" "/$folder"; done
    for file in passwd group; do mount --bind "$2/etc/$file" "/etc/$file"; done
    mount --bind "$2/etc" /etc/libvirt
    mount --bind "$3" /dev/shm
    while HOME=$2/home libvirtd; do :; done' sh "host-$host" "$own" "${memory[$host]}" \
    >"$dir/libvirtd-$host.log" 2>&1 &
  libvirt[$host]=$!
  waitUntil libvirtRepliesOrEnded "$host"
  ! ended "${libvirt[$host]}" || fail "libvirtd of host $host has ended"
}
restartLibvirt() {
  local former
  former=$(daemonOf "$1")
  kill "$former"
  waitUntil ended "$former"
  waitUntil libvirtReplies "$1"
}
# What runs there beside the machine: of a namespace of processes, as this test sees them.
daemonOf() { pgrep --parent "$(pgrep --parent "${libvirt[$1]}")" --exact libvirtd; }
followers() {
  grep -lszxF "HOME=$dir/libvirt-$1/home" /proc/[0-9]*/environ | sed 's/environ$/cmdline/' | xargs -r grep -lszxF follow |
    sed 's/[^0-9]//g'
}

# defineMachine KERNEL-ARGUMENTS DEVICE-XML: the machine `vm`, on host a. What it says is in vm.log wherever it is.
defineMachine() {
  local host
  cat >"$dir/vm.xml" <<XML
<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>vm</name> <uuid>$uuid</uuid> <memory unit='MiB'>192</memory> <vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='pc'>hvm</type> <kernel>$(realpath "$kernel")</kernel> <initrd>$dir/image</initrd>
    <cmdline>console=ttyS0 quiet panic=-1 no_timer_check random.trust_cpu=on mitigations=off $1</cmdline>
  </os>
  <features><acpi/></features> <cpu mode='maximum'/> <on_reboot>destroy</on_reboot>
  <devices>
    <emulator>$(command -v qemu-system-x86_64)</emulator>
    <controller type='usb' model='none'/> <memballoon model='none'/> <serial type='pipe'><source path='/run/vgpu/console'/></serial>
    $2
  </devices>
  <qemu:commandline> <qemu:arg value='-qmp'/> <qemu:arg value='unix:/run/vgpu/vm.qmp,server=on,wait=off'/> </qemu:commandline>
</domain>
XML
  : >"$dir/vm.log"
  for host in a b; do
    mkfifo "$dir/libvirt-$host/run/vgpu/console.in" "$dir/libvirt-$host/run/vgpu/console.out"
    # Opened for writing too: one machine after the other writes there.
    cat 0<>"$dir/libvirt-$host/run/vgpu/console.out" >>"$dir/vm.log" &
  done
  onLibvirt a define "$dir/vm.xml" >/dev/null || fail "libvirt does not define the machine"
}
# machineIsOn a|b: where inGuest sends what it does.
machineIsOn() {
  local file
  exec {file}<>"$dir/libvirt-$1/run/vgpu/console.in"
  console[vm]=$file
}
# runs a|b: the machine.
runs() { [ "$(onLibvirt "$1" domstate vm 2>/dev/null)" = running ]; }
hasEnded() { ! runs "$1"; }
# moves FROM TO [OPTION...]: as `virsh migrate` has it.
moves() {
  local ip
  ip=$([ "$2" = a ] && echo "$hostA" || echo "$hostB")
  onLibvirt "$1" migrate "${@:3}" vm "$(uriOf "$2")" "tcp://$ip"
}
# followerSays a|b PATTERN: what the hook's process there has written.
followerSays() { says "follower-$1" "$2"; }
# isOn HOST OTHER SESSION: it runs there, as its machine does.
isOn() {
  waitUntil runs "$1"
  waitUntil hasState "$1" "$3" running
  waitUntil listsNot "$2" "$3"
}
