# A follower learns the outcome of a machine's migration and reports it, also if it was interrupted or QEMU has ended. A machine that comes
# from another host is followed when it has arrived, and again after each migration that failed. Its programs reach the node by network.
# shellcheck source=../../guest/double.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../guest/double.sh"
declare -A address=()
for node in a b; do
  startNode "$node" --listen tcp:127.0.0.1:0
  address[$node]=$(addressOf "$node")
done
startFar "${address[a]}" kept 16

# follows NODE MACHINE TARGET [OPTION...]: starts a follower in the background.
follows() {
  "$tree/bin/vgpuctl" --node "unix:$dir/$1/vgpud.sock" machine follow --qmp "$dir/$2.qmp" --to "${address[$3]}" "${@:4}" >"$dir/follow.log" 2>&1 &
  following=$!
}
# follower CODE PATTERN: the follower must end with this exit code and message.
follower() {
  local code=0
  waitUntil ended "$following"
  wait "$following" || code=$?
  [ "$code" = "$1" ] || fail "machine follow returned $code"
  grep -q "$2" "$dir/follow.log" || fail "machine follow did not say '$2'"
}
# isAt NODE OTHER [NAME]
isAt() {
  waitUntil hasState "$1" "${3:-kept}" running
  waitUntil listsNot "$2" "${3:-kept}"  # a moment later, if its program reaches them over a network
  memoryIsRight "${3:-kept}"
}
# interrupted MACHINE: interrupts the follower when the migration was continued and it is not known whether the machine is at its target.
interrupted() {
  waitUntil migrationIs "$1" device
  kill -TERM "$following"
  sleep 0.3
}

startDoubleMachine one
afterHandover one waits
follows a one b --uri tcp:elsewhere:1
interrupted one
endsAs one failed
follower 1 "and all of its sessions stay"
isAt a b
follows a one b --uri tcp:elsewhere:1
interrupted one
endsAs one completed
follower 0 "has moved with 1 sessions"
isAt b a
endMachine one
# Its QEMU ends without reporting, and its programs reply at the target.
startDoubleMachine one
afterHandover one waits
follows b one a --uri tcp:elsewhere:1
waitUntil migrationIs one device
endMachine one
follower 0 "has moved with 1 sessions"
isAt a b

# A program that starts during the migration migrates too.
startDoubleMachine one
afterHandover one completed
qmp one x-left '{"bytes": 1000000000000}' >/dev/null
follows a one b
waitUntil holdsHandover one
qmp one migrate '{"uri": "tcp:elsewhere:1"}' >/dev/null
refused "serves another client" ctl a machine follow --qmp "$dir/one.qmp" --to "${address[b]}"
startFar "${address[a]}" late 1
qmp one x-left '{"bytes": 0}' >/dev/null
follower 0 "has moved with 2 sessions"
isAt b a late
isAt b a
endContents late
endMachine one

# `virsh save`: the processors are stopped, and then the machine is written to a file.
startDoubleMachine one
follows b one a
waitUntil holdsHandover one
qmp one stop >/dev/null
qmp one migrate '{"uri": "fd:migrate"}' >/dev/null
follower 1 "stopped, .*vgpuctl machine save"
migrationIs one cancelled || fail "a machine goes to disk without its sessions"
isAt b a
# Another client has begun a migration before.
qmp one migrate '{"uri": "tcp:elsewhere:1"}' >/dev/null
refused "is in progress already" ctl b machine follow --qmp "$dir/one.qmp" --to "${address[a]}"
endMachine one

# libvirt calls its hook before the machine has arrived, and before or after `migrate-incoming`.
export VGPU_MACHINES=$dir/machines
libvirtDoes "Outgoing migration" migrating
comes() { qmp here migrate-incoming '{"uri": "tcp:0.0.0.0:1"}' >/dev/null; }
hook() {
  echo "double unix:$dir/$1/vgpud.sock ${address[$2]} $dir/here.qmp" >"$VGPU_MACHINES"
  echo '<domain/>' | "$tree/lib/vgpu/libvirt-hook" double started begin - 2>"$dir/hook.log" || fail "the hook returned $?"
}
hasArrived() {
  ! holdsHandover here || fail "a machine that is on its way is followed"
  qmp here x-arrive >/dev/null
  waitUntil holdsHandover here
}
isFollowed() { [ -n "$(processesOfRun | xargs -r -n 1 sh -c 'tr "\0" " " <"/proc/$0/cmdline"' 2>/dev/null | grep "[m]achine follow")" ]; }
notFollowed() { ! isFollowed; }
startDoubleMachine here --incoming
comes
hook b a
sleep 0.3
hasArrived
# The machine is continued at its source: it stays, and is followed again.
afterHandover here runs-here
libvirtMoves here
waitUntil says machine-double "the machine runs on its source host again"
isAt b a
afterHandover here completed
libvirtMoves here
waitUntil says machine-double "(kept) runs on emulated 0 of ${address[a]}"
isAt a b
endMachine here
waitUntil notFollowed
startDoubleMachine here --incoming
hook a b
waitUntil isFollowed
sleep 0.3
comes
hasArrived
afterHandover here completed
libvirtMoves here
waitUntil says machine-double "(kept) runs on emulated 0 of ${address[b]}"
isAt b a
endMachine here
waitUntil notFollowed
endContents kept
stopNode a
stopNode b
