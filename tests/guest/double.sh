# A virtual machine without an emulator, for cases of tests/tools: to be sourced after library.sh. Its programs run in in-guest and share
# the memory $memory with the host, as guest `one`. Its monitor is machine-double, which stops the programs, and saves and loads $memory.
# shellcheck shell=bash
guests=$(dirname "${BASH_SOURCE[0]}")
one=$(guestFolder one)
memory=$one/memory
declare -A machine=()
"$guests/../in-guest" "$one" true || skip "no namespaces can be made here"
inMachine() { "$guests/../in-guest" "$one" "$tree/bin/vgpuctl" --node "ivshmem:$memory" run "$@"; }

# startDoubleMachine NAME [--incoming]: its monitor socket is NAME.qmp; the test's own socket is NAME.qmp.test.
startDoubleMachine() {
  rm -f "$dir/$1.qmp" "$dir/$1.qmp.test"
  python3 "$guests/machine-double" "$dir/$1.qmp" "$memory" "${@:2}" >"$dir/$1-machine.log" 2>&1 &
  machine[$1]=$!
  waitUntil listensOrEnded "$1"
  ! ended "${machine[$1]}" || fail "the machine $1 has ended"
}
listensOrEnded() { [ -S "$dir/$1.qmp" ] || ended "${machine[$1]}"; }
qmp() { python3 "$guests/qmp" "$dir/$1.qmp.test" "${@:2}"; }
# afterHandover NAME failed|completed|runs-here|waits: sets the outcome of a migration after its `migrate-continue`.
afterHandover() { qmp "$1" x-after-handover "{\"becomes\": \"$2\"}" >/dev/null; }
endsAs() { qmp "$1" x-end-migration "{\"becomes\": \"$2\"}" >/dev/null; }
migrationIs() { [ "$(qmp "$1" query-migrate | sed -n 's/.*"status": "\([a-z-]*\)".*/\1/p')" = "$2" ]; }
holdsHandover() { qmp "$1" query-migrate-capabilities | grep -q '"capability": "pause-before-switchover", "state": true'; }
endMachine() {
  qmp "$1" quit >/dev/null
  waitUntil ended "${machine[$1]}"
}

# libvirtDoes JOB REASON: from now on the hook's virsh reports JOB as libvirt's job, and REASON as the reason why the machine is paused.
libvirtDoes() {
  mkdir -p "$dir/bin"
  cat >"$dir/bin/virsh" <<SH
#!/bin/sh
case \$4 in
  domjobinfo) printf 'Job type:         Unbounded   \nOperation:        $1\n' ;;
  domstate) printf 'paused ($2)\n' ;;
esac
SH
  chmod +x "$dir/bin/virsh"
  [[ $PATH == "$dir/bin:"* ]] || PATH=$dir/bin:$PATH
}
# libvirtMoves NAME: begins a migration and sends its `migrate-continue`, as libvirt does.
libvirtMoves() {
  qmp "$1" migrate '{"uri": "tcp:elsewhere:1"}' >/dev/null
  waitUntil migrationIs "$1" pre-switchover
  qmp "$1" migrate-continue '{"state": "pre-switchover"}' >/dev/null || fail "somebody else has let the migration go on"
}

# startInMachine NAME MIB: starts the program contents in the machine, as startContents does on the host.
startInMachine() {
  local file
  [ -x "$tree/tests/programs/contents" ] || skip "no program contents"
  rm -f "$dir/$1.in"
  mkfifo "$dir/$1.in"
  : >"$dir/$1.log"  # truncated, because an earlier program's log says `ready`
  inMachine --name "$1" -- "$tree/tests/programs/contents" --serve random "$2" <"$dir/$1.in" >"$dir/$1.log" 2>&1 &
  runner[$1]=$!
  exec {file}<>"$dir/$1.in"
  commands[$1]=$file
}

# allReached POINT...: fails unless each fault point was reached, by the kind of process that --list-fault-points names for it.
export VGPU_FAULT_LOG=$dir/faults
allReached() {
  local point
  for point in "$@"; do
    grep -q "^$point $("$tree/bin/vgpud" --list-fault-points | awk -F '\t' -v point="$point" '$1 == point { print $2 }') " "$VGPU_FAULT_LOG" ||
      fail "nobody came to $point"
  done
}
