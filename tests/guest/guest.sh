# Virtual machines under software emulation, for cases of tests/tools: to be sourced after library.sh. A guest has no disk: make-image makes
# its initial file system. It executes the lines that `inGuest` sends over its serial console, whose output is in NAME.log.
# shellcheck shell=bash
limit=${VGPU_TIME_LIMIT:-90}  # an emulated processor is ten to twenty times slower
guests=$(dirname "${BASH_SOURCE[0]}")
kernel=$guests/../../.deps/guest-kernel/vmlinuz
declare -A machine=() console=()

# makeImage PROGRAM...: makes the guests' file system, $dir/image, with these test programs.
makeImage() {
  [ -z "${VGPU_PROGRAM_PRELOAD:-}" ] || skip "a guest has no sanitizer's runtime"
  command -v qemu-system-x86_64 >/dev/null || skip "there is no qemu-system-x86_64 (Debian: qemu-system-x86)"
  [ -e "$kernel" ] || skip "there is no kernel for guests: tools/setup fetches one"
  "$guests/make-image" "$tree" "$dir/image" "${@/#/$tree/tests/programs/}" >"$dir/image.log" 2>&1 || fail "no image for guests"
}

# startMachine NAME KERNEL-ARGUMENTS QEMU-OPTION...: starts a QEMU process. Its monitor NAME.qmp is for vgpu, NAME.monitor for the test. The
# command is prefixed with ${inNamespace[@]} if that is set.
startMachine() {
  local name=$1 words=$2 file
  shift 2
  rm -f "$dir/$name.in" "$dir/$name.out" "$dir/$name.log"
  mkfifo "$dir/$name.in" "$dir/$name.out"
  cat "$dir/$name.out" >"$dir/$name.log" &
  "${inNamespace[@]}" qemu-system-x86_64 -name "$name" -accel tcg,thread=multi -cpu max -m 192 -no-user-config -nodefaults \
    -display none -no-reboot -kernel "$kernel" -initrd "$dir/image" \
    -append "console=ttyS0 quiet panic=-1 no_timer_check random.trust_cpu=on mitigations=off $words" \
    -chardev "pipe,id=console,path=$dir/$name" -serial chardev:console \
    -qmp "unix:$dir/$name.qmp,server=on,wait=off" -qmp "unix:$dir/$name.monitor,server=on,wait=off" "$@" \
    >"$dir/$name-qemu.log" 2>&1 &
  machine[$name]=$!
  exec {file}>"$dir/$name.in"
  console[$name]=$file
  waitUntil answersOrEnded "$name"
  ! ended "${machine[$name]}" || fail "QEMU of $name has ended"
}
answersOrEnded() { [ -S "$dir/$1.monitor" ] || ended "${machine[$1]}"; }

# startGuest NAME ADDRESS GATEWAY NODE QEMU-OPTION...: starts a machine that boots; its programs reach the node at address NODE.
startGuest() {
  startMachine "$1" "vgpu.address=$2 vgpu.gateway=$3 vgpu.node=$4 vgpu.limit=${VGPU_LINK_LIMIT:-60}" "${@:5}"
  waitUntil says "$1" "guest: ready"
}
# startUserGuest NAME NODE QEMU-OPTION...: a guest that has only QEMU's user networking: the host's loopback is 10.0.2.2.
startUserGuest() {
  startGuest "$1" 10.0.2.15/24 10.0.2.2 "$2" -netdev user,id=net -device virtio-net-pci,netdev=net "${@:3}"
}

# inGuest NAME COMMAND: sends a line of shell and does not wait for it.
inGuest() { echo "$2" >&"${console[$1]}"; }
# guestReturns NAME COMMAND: sends a line of shell and waits; it must return 0.
guestReturns() {
  local already
  already=$(grep -c '^guest: [0-9]' "$dir/$1.log")
  inGuest "$1" "$2"
  waitUntil guestReplied "$1" "$already"
  [ "$(sed -n 's/^guest: \([0-9]*\).*/\1/p' "$dir/$1.log" | tail -n 1)" = 0 ] || fail "in the guest $1, this failed: $2"
}
guestReplied() { [ "$(grep -c '^guest: [0-9]' "$dir/$1.log")" -gt "$2" ]; }

# worksAt NODE NAME: a program of guest NAME runs to its end on NODE; another one, steady, runs there all the time, and is suspended and
# resumed meanwhile.
worksAt() {
  guestReturns "$2" "vgpuctl run -- /bin/vector-add 3000"
  says "$2" 'vector-add: ok' || fail "the program has not said that its answer is right"
  inGuest "$2" "vgpuctl run --name steady -- /bin/steady /tmp/end &"
  waitUntil lists "$1" steady
  waitUntil says "$2" 'steady: begins'
  succeeds ctl "$1" suspend steady --to "$dir/steady"
  succeeds ctl "$1" resume "$dir/steady"
  hasState "$1" steady running || fail "the guest's session is $(field "$1" steady state)"
}
# endSteady NAME: ends steady; its results must have been right to the end.
endSteady() {
  guestReturns "$1" "touch /tmp/end; wait"
  says "$1" 'steady: ok' || fail "the program has not said that its answer is right"
}

# qmp NAME COMMAND [ARGUMENTS]: sends one command to QEMU, with ARGUMENTS as JSON, and prints the result.
qmp() { python3 "$guests/qmp" "$dir/$1.monitor" "${@:2}"; }
# machineIs NAME STATUS: whether the machine is running, postmigrate, ...
machineIs() { [ "$(qmp "$1" query-status | sed -n 's/.*"status": "\([a-z-]*\)".*/\1/p')" = "$2" ]; }
migrationIs() { [ "$(qmp "$1" query-migrate | sed -n 's/.*"status": "\([a-z-]*\)".*/\1/p')" = "$2" ]; }
endMachine() {
  qmp "$1" quit >/dev/null
  waitUntil ended "${machine[$1]}"
}
