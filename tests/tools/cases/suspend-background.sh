# Suspends that go to memory first and are written in the background: durable when the store says so, resumed at any moment before
# and after.
export VGPU_STORE=$dir/store VGPU_FAULT_LOG=$dir/faults
wasHit() { grep -qs "^$1 .* ${2:-[a-z]*}$" "$dir/faults"; }
place() {
  ctl "$1" snapshots ls --json | python3 -c '
import json, sys
print(*[s["place"] for s in json.load(sys.stdin) if s["snapshot"] == sys.argv[1]])' "$2"
}
isIn() { [ "$(place "$1" "$2")" = "$3" ]; }

# Written: it is like any other from then on, for another daemon too, and the end of the one that wrote it does not matter.
startNode a --pinned 48MiB
startNode b
startContents a one 24
succeeds ctl a suspend one --background
grep -q "is being written" "$dir/succeeds.log" || fail "it does not say that it is being written"
waitUntil isIn a one disk
succeeds ctl a snapshots verify one
[ "$(processes vgpu-worker | wc -l)" = 2 ] || fail "the process that wrote it is left"
stopNode a
succeeds ctl b resume one
memoryIsRight one
endContents one

# Resumed while it is being written: from memory, and it comes to disk all the same.
VGPU_FAULT_POINT=write.writing:stop startNode c --pinned 48MiB
startContents c two 24
succeeds ctl c suspend two --background
waitUntil wasHit write.writing stop
[ "$(place c two)" = memory ] || fail "before it is written it is in '$(place c two)'"
refused "in the memory of another vgpud" ctl b resume two
succeeds ctl c resume two
tell two change changed
memoryIsRight two
writer=$(grep '^write.writing .* stop$' "$dir/faults" | cut -d' ' -f3)
kill -CONT "$writer"
waitUntil isIn c two disk
succeeds ctl c snapshots verify two

# Its daemon is killed before: lost, and the program says so.
rm "$dir/faults"
succeeds ctl c suspend two --background --name again
waitUntil wasHit write.writing stop
kill -KILL "${daemon[c]}"
wait "${runner[two]}" && fail "a program that has lost its snapshot ended well"
waitUntil says two "its snapshot was in the memory of its vgpud"
waitUntil isIn b again lost
succeeds ctl b snapshots gc
isGone "$VGPU_STORE/snapshots/again" || fail "what is left of it stays"
succeeds ctl b snapshots verify

# The process that writes is killed: the snapshot is in memory as before.
rm "$dir/faults"
VGPU_FAULT_POINT=write.manifest-written:kill startNode d --pinned 48MiB
startContents d three 24
succeeds ctl d suspend three --background
waitUntil says d "stays in memory: it could not be written"
isIn d three memory || fail "it is in '$(place d three)'"
succeeds ctl d resume three
memoryIsRight three
endContents three
waitUntil isGone "$VGPU_STORE/snapshots/three"
