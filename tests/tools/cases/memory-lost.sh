# Interrupted suspends to pinned memory: the program goes on, or its snapshot is complete, or the program and all later requests get the
# error that it is lost.
export VGPU_STORE=$dir/store VGPU_FAULT_LOG=$dir/faults
wasHit() { grep -qs "^$1 .* stop$" "$dir/faults"; }
place() {
  ctl "$1" snapshots ls --json | python3 -c '
import json, sys
print(*[s["place"] for s in json.load(sys.stdin) if s["snapshot"] == sys.argv[1]])' "$2"
}

# The daemon is killed: its snapshots in memory are lost, the program gets an error, and gc removes the rest.
startNode a --pinned 32MiB
startDouble a one
succeeds ctl a suspend one --to memory
killNode a
waitUntil ended "${double[one]}"
says one '^lost: its snapshot was in the memory of its vgpud, which has ended' || fail "the program was not told"
startNode b --pinned 32MiB
[ "$(place b one)" = lost ] || fail "the store says that the snapshot is in '$(place b one)'"
refused "is lost: it was in the memory of a vgpud that has ended" ctl b resume one
refused "was in the memory of a vgpud that has ended" ctl b snapshots verify
succeeds ctl b snapshots gc
isGone "$VGPU_STORE/snapshots/one" || fail "what is left of a lost snapshot stays"

# The daemon is ended.
startDouble b two
succeeds ctl b suspend two --to memory
stopNode b
waitUntil ended "${double[two]}"
says two '^lost: its snapshot was in the memory of its vgpud' || fail "the program was not told"
isGone "$VGPU_STORE/snapshots/two" || fail "a snapshot is left of a daemon that was ended"

# The caller is killed when all chunks are in memory but the snapshot is not published: the program goes on, and the room is free again.
VGPU_FAULT_POINT=suspend.pinned:stop startNode c --pinned 32MiB --warm 2
startContents c three 24
worker=$(field c three workerPid)
ctl c suspend three --to memory >"$dir/suspend.log" 2>&1 &
suspend=$!
waitUntil wasHit suspend.pinned
killCommands c suspend
letGo "$worker"
waitUntil hasState c three running
memoryIsRight three
waitUntil isEmpty "$VGPU_STORE/snapshots"  # nothing is left of a suspend that was given up
succeeds ctl c suspend three --to memory
[ "$(place c three)" = memory ] || fail "the second suspend is in '$(place c three)'"
succeeds ctl c resume three
memoryIsRight three
endContents three

# A worker dies during a resume: the snapshot is unchanged.
rm "$dir/faults"
VGPU_FAULT_POINT=resume.bytes-restored:kill startNode d --pinned 32MiB
startContents d four 24
succeeds ctl d suspend four --to memory
refused "was killed by signal 9" ctl d resume four
[ "$(place d four)" = memory ] || fail "after a resume that failed the snapshot is in '$(place d four)'"
kill -KILL "$(field d four pid)"
waitUntil isGone "$VGPU_STORE/snapshots/four"

# The store's disk is full and pinned memory is too small: the program goes on.
mkdir "$dir/disk"
mount -t tmpfs -o size=6m vgpu-test "$dir/disk" 2>/dev/null || skip "no permission to mount a small disk"
export VGPU_STORE=$dir/disk/store
startNode e --pinned 8MiB
startContents e five 24
refused "No space left on device" ctl e suspend five --to memory
hasState e five running || fail "the program is $(field e five state)"
memoryIsRight five
waitUntil isEmpty "$VGPU_STORE/snapshots"
endContents five
