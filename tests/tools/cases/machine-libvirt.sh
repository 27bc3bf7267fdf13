# What libvirt's hook does for a machine whose programs share memory with the host depends on libvirt's job: libvirt itself continues a
# migration, and a machine that is being saved runs on until its sessions are suspended. After jobs that fail, machine and sessions go on.
# shellcheck source=../../guest/double.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../guest/double.sh"
startNode a --guest "one=$memory,512MiB"
startNode b --guest "one=$one/other,512MiB" --listen tcp:127.0.0.1:0
startInMachine kept 16
waitUntil says kept ready
export VGPU_MACHINES=$dir/machines
mkdir "$dir/saves"
hook() {
  echo '<domain/>' | "$tree/lib/vgpu/libvirt-hook" double "$1" begin - >"$dir/hook.log" 2>&1
}
# follow [SAVES]: the hook of a machine that libvirt has started.
follow() {
  startDoubleMachine here
  echo "double unix:$dir/a/vgpud.sock $(addressOf b) $dir/here.qmp $*" >"$VGPU_MACHINES"
  hook started || fail "the hook returned $?"
  waitUntil holdsHandover here
}
migrates() { qmp here migrate '{"uri": "tcp:elsewhere:1"}' >/dev/null; }
# stays PATTERN: requires that machine and session stay, and that the follower gives this reason.
isThere() { hasState a kept running && qmp here query-status | grep -q '"running": true'; }
stays() {
  waitUntil says machine-double "'double' and all of its sessions stay: $1"
  waitUntil isThere
  memoryIsRight kept
  isEmpty "$dir/saves" || fail "a save that failed has left its sessions' folder"
  : >"$dir/machine-double.log"
}
# A migration: QEMU refuses the second `migrate-continue`, and libvirt then cancels the migration.
libvirtDoes "Outgoing migration" migrating
follow "$dir/saves"
# When an incoming migration is complete, libvirt clears the capabilities that it had set for it.
qmp here migrate-set-capabilities '{"capabilities": [{"capability": "pause-before-switchover", "state": false}]}' >/dev/null
waitUntil holdsHandover here
migrates
waitUntil migrationIs here pre-switchover
sleep 0.5
migrationIs here pre-switchover || fail "the follower lets go on what libvirt moves"
qmp here migrate-cancel >/dev/null
stays "its migration was cancelled"

# A job that is neither a migration to another host nor a save would lose the sessions.
libvirtDoes Snapshot saving
migrates
stays "libvirt's job 'Snapshot' does not take its sessions along"
# A save of a machine that was paused before.
libvirtDoes Save user
qmp here stop >/dev/null
migrates
waitUntil migrationIs here cancelled
stays "it was stopped before it was saved"
# libvirt pauses the machine and writes its memory to a file, but cannot keep the file.
libvirtDoes Save saving
libvirtSaves() {
  qmp here stop >/dev/null
  migrates
}
afterHandover here runs-here
libvirtSaves
stays "libvirt lets the machine go on"
afterHandover here failed
libvirtSaves
stays "the double was told to fail"
# No folder for the sessions is configured.
endMachine here
follow
libvirtSaves
waitUntil migrationIs here cancelled
stays "libvirt saves it, but no folder is given for its sessions"
endMachine here

# It is saved and restored.
follow "$dir/saves"
afterHandover here completed
libvirtSaves
waitUntil migrationIs here completed
isListed() { [ -e "$dir/saves/double.new/sessions.json" ]; }
waitUntil isListed
cp --sparse=always "$memory" "$dir/memory"
endMachine here  # as libvirt does after a save
isSaved() { [ -e "$dir/saves/double/sessions.json" ] && listsNot a kept; }
waitUntil isSaved
stopNode b
mv "$dir/saves/double/sessions.json" "$dir/list"
hook restore && fail "the hook lets a machine come back whose sessions cannot"
says hook "the sessions of 'double' cannot come back" || fail "the hook does not say why"
mv "$dir/list" "$dir/saves/double/sessions.json"
hook restore || fail "the hook returned $? when the sessions can come back"
startDoubleMachine here --incoming
hook started || fail "the hook returned $?"
qmp here migrate-incoming "{\"uri\": \"exec:cat $dir/memory\"}" >/dev/null
waitUntil isThere
memoryIsRight kept
endContents kept
endMachine here
stopNode a
