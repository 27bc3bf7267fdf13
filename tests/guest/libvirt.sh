# Two hosts with a libvirt each, which runs vgpu's hook: to be sourced after two-hosts.sh. A host is a network namespace (two-hosts.sh).
# libvirtd, QEMU and the hook's processes also have namespaces of processes, mounts and host names. So all of them end with the test,
# although libvirt passes on no environment by which the test could find them, and both hosts have the same paths: /run, /var and
# /etc/libvirt are $dir/libvirt-a/run, var and etc, and /dev/shm is ${memory[a]}.
# shellcheck shell=bash
declare -A libvirt=() memory=()
uuid=5f1c2d3e-0000-4000-8000-000000000001

needLibvirt() {
  command -v libvirtd >/dev/null && command -v virsh >/dev/null ||
    skip "there is no libvirtd or virsh (Debian: libvirt-daemon, libvirt-daemon-driver-qemu, libvirt-clients)"
}

uriOf() { echo "qemu+unix:///system?socket=$dir/libvirt-$1/run/libvirt/libvirt-sock"; }
# onLibvirt a|b COMMAND...: runs a virsh command on that host's libvirt and prints the reply.
onLibvirt() { timeout "$limit" virsh --quiet --connect "$(uriOf "$1")" "${@:2}"; }
# isFollowed HOST: whether the machine has a follower, which makes QEMU wait for it before a migration or a save ends.
isFollowed() {
  [[ $(onLibvirt "$1" qemu-monitor-command vm '{"execute": "query-migrate-capabilities"}' 2>/dev/null) == \
    *'"state":true,"capability":"pause-before-switchover"'* ]]
}
libvirtReplies() { onLibvirt "$1" uri >/dev/null 2>&1; }
libvirtRepliesOrEnded() { libvirtReplies "$1" || ended "${libvirt[$1]}"; }

# makeLibvirts: call it after makeGuestHosts. The hooks migrate sessions with the machine `vm` from each host's node to the other one's, and
# keep the sessions of a saved machine in $dir/saves-a and -b.
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
  # libvirt refuses to migrate between two hosts with the same UUID.
  printf '%s\n' 'auth_unix_rw = "none"' 'log_outputs = "4:stderr"' "host_uuid = \"00000000-0000-4000-8000-00000000000$number\"" >"$own/etc/libvirtd.conf"
  printf '%s\n' 'user = "root"' 'group = "root"' 'security_driver = "none"' 'stdio_handler = "file"' 'cgroup_controllers = []' \
    'dynamic_ownership = 0' >"$own/etc/qemu.conf"
  # libvirt starts no machine without the user libvirt-qemu. Debian's libvirt-daemon-system creates it, and so do systemd's services.
  for file in passwd group; do cp "/etc/$file" "$own/etc/$file"; done
  grep -q '^libvirt-qemu:' "$own/etc/passwd" || {
    echo 'libvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin' >>"$own/etc/passwd"
    echo 'libvirt-qemu:x:64055:' >>"$own/etc/group"
  }
  # The shell, as process 1, reaps orphans of the hook and libvirtd: for libvirt, a QEMU that has ended exists until it is reaped.
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
# libvirtd and the followers in that host's process namespace, with their process ids as this test sees them.
daemonOf() { pgrep --parent "$(pgrep --parent "${libvirt[$1]}")" --exact libvirtd; }
followers() {
  grep -lszxF "HOME=$dir/libvirt-$1/home" /proc/[0-9]*/environ | sed 's/environ$/cmdline/' | xargs -r grep -lszxF follow |
    sed 's/[^0-9]//g'
}

# defineMachine KERNEL-ARGUMENTS DEVICE-XML: defines the machine `vm` on host a. Its console output is in vm.log on whichever host it runs.
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
    # Opened for writing too, so that cat sees no end of file when one machine ends and another one opens the pipe.
    cat 0<>"$dir/libvirt-$host/run/vgpu/console.out" >>"$dir/vm.log" &
  done
  onLibvirt a define "$dir/vm.xml" >/dev/null || fail "libvirt does not define the machine"
}
# machineIsOn a|b: tells inGuest which host's console to write to.
machineIsOn() {
  local file
  exec {file}<>"$dir/libvirt-$1/run/vgpu/console.in"
  console[vm]=$file
}
# runs a|b: whether the machine runs there.
runs() { [ "$(onLibvirt "$1" domstate vm 2>/dev/null)" = running ]; }
hasEnded() { ! runs "$1"; }
# moves FROM TO [OPTION...]: migrates the machine with `virsh migrate`.
moves() {
  local ip
  ip=$([ "$2" = a ] && echo "$hostA" || echo "$hostB")
  onLibvirt "$1" migrate "${@:3}" vm "$(uriOf "$2")" "tcp://$ip"
}
# followerSays a|b PATTERN: whether the output of the hook's process there matches.
followerSays() { says "follower-$1" "$2"; }
# isOn HOST OTHER SESSION: requires that the session runs on HOST, as its machine does, and not on OTHER.
isOn() {
  waitUntil runs "$1"
  waitUntil hasState "$1" "$3" running
  waitUntil listsNot "$2" "$3"
}
