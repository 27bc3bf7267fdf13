# A machine whose programs share memory with its host is saved with their sessions, and restored from a copy of that folder at a node
# without any record of it, and again where it was saved. A target that does not fit is refused by name before, and nothing is lost.
# shellcheck source=../../guest/double.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../guest/double.sh"
[ -x "$tree/tests/programs/memory" ] || skip "no program memory"
startNode a --guest "one=$memory,512MiB"
startInMachine kept 16
# The pinned memory of `pinned` has two copies; that of `shared` is only in the machine's memory.
VGPU_PINNED_COPIES=1 VGPU_PAUSE_FILE=$one/pause inMachine --name pinned -- "$tree/tests/programs/memory" >"$dir/pinned.log" 2>&1 &
pinned=$!
VGPU_PAUSE_FILE=$one/pause-shared inMachine --name shared -- "$tree/tests/programs/pinned-exchange" 20 >"$dir/shared.log" 2>&1 &
shared=$!
waitUntil says kept ready
waitUntil test -e "$one/pause.reached"
waitUntil test -e "$one/pause-shared.reached"
startDoubleMachine here
save() { ctl "$1" machine save --qmp "$dir/$2.qmp" "${@:3}"; }
restore() { ctl "$1" machine restore --qmp "$dir/$2.qmp" "${@:3}"; }

# A machine that cannot be saved goes on.
refused "is not saved and goes on" save a here --uri "exec:false" "$dir/failed"
[ ! -e "$dir/failed" ] || fail "a save that failed has left its folder"
for name in kept pinned shared; do hasState a $name running || fail "$name is $(field a $name state) after a save that failed"; done
memoryIsRight kept

succeeds save a here "$dir/saved"
waitUntil ended "${machine[here]}"
for name in kept pinned shared; do waitUntil listsNot a $name; done
stopNode a  # nothing of that host is left
cp -r "$dir/saved" "$dir/carried"
rm -rf "$dir/saved"

# Nothing is loaded at a target that does not fit.
startDoubleMachine there --incoming --confined
startNode other
startNode small --guest "one=$one/small,256MiB"
VGPU_EMULATED=memory=8MiB startNode tight --guest "one=$one/tight,512MiB"
refused "does not serve that guest: start it with --guest one=FILE" restore other there "$dir/carried"
refused "does not serve that guest: start it with --guest two=FILE" restore small there --guest two "$dir/carried"
refused "give both the same size" restore small there "$dir/carried"
refused "memory" restore tight there "$dir/carried"
refused "No such file\|no vgpud\|nothing answers" restore nobody there "$dir/carried"
refused "there is no folder $dir/nothing" restore other there "$dir/nothing"
startNode b --guest "one=$memory"
damaged() {  # PATTERN FILE COMMAND...: the restore must fail with PATTERN after COMMAND has changed that file of the folder.
  mkdir "$dir/damaged"
  cp -r "$dir/carried/sessions.json" "$dir/carried"/*/ "$dir/damaged"
  ln "$dir/carried/machine" "$dir/damaged"
  "${@:3}" "$dir/damaged/$2"
  refused "$1" restore b there "$dir/damaged"
  rm -rf "$dir/damaged"
}
session=$(python3 -c 'import json, sys; print(*[s["session"] for s in json.load(open(sys.argv[1]))["sessions"] if s["name"] == "pinned"])' "$dir/carried/sessions.json")
damaged "saving the machine did not complete" sessions.json rm
damaged "is not a list of sessions of version 2" sessions.json truncate -s 10
damaged "is damaged" sessions.json sed -i 's/"slot"/"place"/'
damaged "host-arena: it is truncated" "$session/host-arena" truncate -s 100
damaged "host-arena: its checksum does not match" "$session/host-arena" sed -i '$ s/.$/x/'
damaged "host-arena cannot be opened" "$session/host-arena" rm
damaged "manifest" "$session/manifest.json" rm
unlink() { cp --sparse=always "$1" "$1.own" && mv "$1.own" "$1"; }
shorter() { unlink "$1" && truncate -s -1 "$1"; }
byte() { unlink "$1" && printf '\x5a' | dd of="$1" bs=1 seek=123456789 conv=notrunc status=none; }
damaged "file machine: length" machine shorter
damaged "file machine: checksum" machine byte
damaged "file machine: cannot be opened" machine rm
damaged "name the place to which it was saved" sessions.json sed -i 's/"memory"/"elsewhere"/'
startDoubleMachine loaded
refused "start its QEMU with -incoming defer" restore b loaded "$dir/carried"
kill "${machine[loaded]}"
[ "$(qmp there query-status)" = '{"status": "inmigrate", "running": false}' ] || fail "the machine was loaded after a refusal"

# It can be restored repeatedly; the second time where it was saved.
succeeds restore b there "$dir/carried"
for name in kept pinned shared; do hasState b $name running || fail "$name is $(field b $name state) where its machine runs"; done
memoryIsRight kept
tell kept change changed
refused "is on this node already\|start its QEMU" restore b there "$dir/carried"
succeeds save b there "$dir/again"
waitUntil ended "${machine[there]}"
startDoubleMachine back --incoming --confined
succeeds restore b back "$dir/again"
memoryIsRight kept

# vgpuctl is killed before the node has been told, and before the machine is saved.
for point in machine.saved machine.suspended; do
  VGPU_FAULT_POINT=$point save b back "$dir/$point" >"$dir/killed.log" 2>&1 && fail "vgpuctl did not come to $point"
  hasState b kept suspended || fail "the session is $(field b kept state) after $point"
  if [ "$point" = machine.saved ]; then
    endMachine back
    startDoubleMachine back --incoming
    succeeds restore b back "$dir/$point"
  else
    for session in "$dir/$point"/*/; do succeeds ctl b resume "$session"; done
  fi
  memoryIsRight kept
done
# The same during a restore: it can be repeated.
succeeds save b back "$dir/last"
waitUntil ended "${machine[back]}"
startDoubleMachine last --incoming
VGPU_FAULT_POINT=machine.restored restore b last "$dir/last" >"$dir/killed.log" 2>&1 && fail "vgpuctl did not come to machine.restored"
waitUntil listsNot b kept
succeeds restore b last "$dir/last"
memoryIsRight kept

: >"$one/pause.go"
: >"$one/pause-shared.go"
for program in "$pinned" "$shared"; do
  code=0
  wait "$program" || code=$?
  [ "$code" = 0 ] || fail "a program with pinned memory returned $code"
done
endContents kept
stopNode b
allReached machine.suspended machine.saved machine.restored
