# A machine whose save fails goes on with all of its sessions, at whatever step it fails; if it cannot go on, the message says that it is
# paused or has ended.
# shellcheck source=../../guest/double.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../guest/double.sh"
startNode a --guest "one=$memory,512MiB"
startInMachine kept 16
waitUntil says kept ready
startDoubleMachine here
save() { ctl a machine save --qmp "$dir/here.qmp" "$@"; }
isRunning() { qmp here query-status | grep -q '"running": true'; }
# Creates a folder at the path of the list of sessions when the machine is on disk.
inTheWay() { echo "exec:cat >/dev/null; mkdir $dir/$1/sessions.json"; }

refused "is not saved and goes on: .*sessions.json" save --uri "$(inTheWay full)" "$dir/full"
isRunning || fail "the machine stands still after a save that failed"
hasState a kept running || fail "its session is $(field a kept state)"
memoryIsRight kept
[ ! -e "$dir/full" ] || fail "a save that failed has left its folder"

# QEMU refuses to continue it.
qmp here x-refuse '{"command": "cont"}' >/dev/null
refused "is not saved, and is stopped: .*resume its sessions from $dir/stuck" save --uri "$(inTheWay stuck)" "$dir/stuck"
hasState a kept suspended || fail "the session of a machine that stands still is $(field a kept state)"
qmp here x-refuse '{"command": ""}' >/dev/null
qmp here cont >/dev/null
succeeds ctl a resume "$dir/stuck/$(field a kept session)"
memoryIsRight kept

# Its QEMU ends: no processes of the programs are left, and the node drops their sessions.
refused "is not saved, and its QEMU has ended" save --uri 'exec:kill -KILL $PPID' "$dir/ended"
waitUntil ended "${machine[here]}"
waitUntil listsNot a kept
[ ! -e "$dir/ended" ] || fail "the folder of a machine that has ended is left"
stopNode a
