# A machine whose sessions cannot run at the target does not migrate: whoever begins the migration, it is refused or cancelled before the
# machine's processors are stopped, with the reason. Holds for programs that share memory with the host and for those that use the network.
# shellcheck source=../../guest/double.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../guest/double.sh"
export VGPU_MACHINES=$dir/machines
libvirtDoes "Outgoing migration" migrating
startNode a --guest "one=$memory,512MiB" --listen tcp:127.0.0.1:0
VGPU_EMULATED=memory=8MiB startNode small --guest "one=$one/small,512MiB" --listen tcp:127.0.0.1:0
VGPU_EMULATED=architecture=80 startNode other --guest "one=$one/other,512MiB" --listen tcp:127.0.0.1:0

# vetoed TARGET PATTERN: by a follower that begins the migration, and by libvirt's hook, which follows one that another client begins.
vetoed() {
  local target
  target=$(addressOf "$1")
  startDoubleMachine here
  refused "$2" ctl a machine follow --qmp "$dir/here.qmp" --to "$target" --uri tcp:elsewhere:1
  echo "double unix:$dir/a/vgpud.sock $target $dir/here.qmp" >"$VGPU_MACHINES"
  rm -f "$dir/machine-double.log"
  echo '<domain/>' | "$tree/lib/vgpu/libvirt-hook" double started begin - 2>"$dir/hook.log" || fail "the hook returned $?"
  waitUntil holdsHandover here
  qmp here migrate '{"uri": "tcp:elsewhere:1"}' >/dev/null
  waitUntil migrationIs here cancelled
  waitUntil says machine-double "$2"
  [ "$(qmp here query-status)" = '{"status": "running", "running": true}' ] || fail "the machine does not run after a veto"
  [ "$(qmp here x-halts)" = '{"count": 0}' ] || fail "the machine stood still before a veto"
  hasState a kept running || fail "the session is $(field a kept state) after a veto"
  waitUntil listsNot "$1" kept
  memoryIsRight kept
  endMachine here
}
bothVeto() {
  vetoed small "for the arriving session: CUDA_ERROR_OUT_OF_MEMORY"
  vetoed other "migrate it to a node with the same model"
}
startInMachine kept 16
waitUntil says kept ready
bothVeto
endContents kept
waitUntil listsNot a kept
startFar "$(addressOf a)" kept 16
bothVeto
endContents kept
for node in a small other; do stopNode $node; done
