# Suspends that go to memory first and are written in the background: durable when the store says so, and can be resumed at any moment
# before and after.
export VGPU_STORE=$dir/store VGPU_FAULT_LOG=$dir/faults
wasHit() { grep -qs "^$1 .* ${2:-[a-z]*}$" "$dir/faults"; }
place() {
  ctl "$1" snapshots ls --json | python3 -c '
import json, sys
print(*[s["place"] for s in json.load(sys.stdin) if s["snapshot"] == sys.argv[1]])' "$2"
}
isIn() { [ "$(place "$1" "$2")" = "$3" ]; }

# Written: from then on it is like any other, also for another daemon, and does not need the daemon that wrote it.
startNode a --pinned 48MiB
startNode b
startContents a one 24
succeeds ctl a suspend one --background
grep -q "is being written" "$dir/succeeds.log" || fail "it does not say that it is being written"
waitUntil isIn a one disk
succeeds ctl a snapshots verify one
writer=$(grep '^write.writing ' "$dir/faults" | head -n 1 | cut -d' ' -f3)
waitUntil ended "$writer"
stopNode a
succeeds ctl b resume one
memoryIsRight one
endContents one

# Resumed from memory while it is being written; the writing continues.
VGPU_FAULT_POINT=write.writing:stop startNode c --pinned 48MiB
startContents c two 24
tell two change changed  # so that there is something to write: the chunks of `one` may still be in the store
succeeds ctl c suspend two --background
waitUntil wasHit write.writing stop
[ "$(place c two)" = memory ] || fail "before it is written it is in '$(place c two)'"
ctl c snapshots ls | finds "contents.*, being written: .* of 2.0 MiB" || fail "ls does not say how far it is: $(ctl c snapshots ls)"
ctl c ps | finds "contents.*, being written: .* of 2.0 MiB" || fail "ps does not say how far it is: $(ctl c ps)"
refused "in the memory of another vgpud" ctl b resume two
succeeds ctl c resume two
tell two change changed
memoryIsRight two
writer=$(grep '^write.writing .* stop$' "$dir/faults" | cut -d' ' -f3)
letGo "$writer"
waitUntil isIn c two disk
succeeds ctl c snapshots verify two
nothingIsWritten() { ! ctl c snapshots ls | finds "being written"; }
waitUntil nothingIsWritten
waitUntil isGone "$VGPU_STORE/snapshots/two/writing"

# Its daemon is killed before: it is lost, and the program gets that error.
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

# The process that writes is killed: the snapshot stays in memory.
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

# To a directory, because memory had no room for a part: once on disk it is like any other, wherever it is moved.
startNode e --pinned 16MiB
startContents e four 24
rm "$dir/faults"
place() { ctl "$1" inspect "$2" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["place"])'; }
isIn() { [ "$(place "$1" "$2")" = "$3" ]; }
ctl e suspend four --background --to "$dir/four" --json >"$dir/report.log" || fail "no suspend in the background to a directory"
report() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1" <"$dir/report.log"; }
[ "$(report memoryBytes)" -ge $((14 << 20)) ] || fail "$(report memoryBytes) bytes went to memory"
onDisk=$(report storedBytes)
[ "$onDisk" -ge $((7 << 20)) ] && [ "$onDisk" -le $((12 << 20)) ] || fail "$onDisk bytes went to disk"
waitUntil isIn e "$dir/four" disk
wasHit write.writing || fail "nothing was written in the background"
stopNode e
mv "$dir/four" "$dir/moved"
succeeds ctl b resume "$dir/moved"
memoryIsRight four

# Resumed from memory before it is written; a second suspend to it is refused, and it is lost when its daemon ends.
rm "$dir/faults"
VGPU_FAULT_POINT=write.writing:stop startNode f --pinned 48MiB
startContents f five 24
succeeds ctl f suspend five --background --to "$dir/five"
waitUntil wasHit write.writing stop
isIn f "$dir/five" memory || fail "before it is written it is in '$(place f "$dir/five")'"
refused "in the memory of another vgpud" ctl b resume "$dir/five"
succeeds ctl f resume "$dir/five"
memoryIsRight five
refused "it is not empty\|another suspend is writing" ctl f suspend five --to "$dir/five"
letGo "$(grep '^write.writing .* stop$' "$dir/faults" | cut -d' ' -f3)"
waitUntil isIn f "$dir/five" disk
rm "$dir/faults"
succeeds ctl f suspend five --background --to "$dir/again"
waitUntil wasHit write.writing stop
kill -KILL "${daemon[f]}"
wait "${runner[five]}" && fail "a program that has lost its snapshot ended well"
waitUntil isIn b "$dir/again" lost
refused "is lost" ctl b resume "$dir/again"

# A daemon that is ended finishes its writes: the program waits, and any daemon can resume it.
stoppedWriter() { sed -n "s/^$1 [^ ]* \([0-9]*\) stop\$/\1/p" "$dir/faults"; }
# beginToWrite NAME POINT: suspends on node h, whose writer is stopped at that fault point.
beginToWrite() {
  rm -f "$dir/faults"
  export VGPU_STORE=$dir/store-$1  # a new store, so that there is something to write
  VGPU_FAULT_POINT=$2:stop startNode h --pinned 48MiB
  startContents h "$1" 24
  succeeds ctl h suspend "$1" --background
  waitUntil wasHit "$2" stop
  kill -TERM "${daemon[h]}"
  waitUntil says h "ending on signal"
}
beginToWrite seven write.writing
sleep 0.2  # in which it would have ended
alive "${daemon[h]}" || fail "vgpud ended although it was writing a snapshot"
letGo "$(stoppedWriter write.writing)"
endsCleanly h
isIn b "$VGPU_STORE/snapshots/seven" disk || fail "it is in '$(place b "$VGPU_STORE/snapshots/seven")'"
succeeds ctl b resume seven
memoryIsRight seven
endContents seven

# A second signal ends it at once, and the snapshot is lost, unless its manifest is already renamed into place.
beginToWrite eight write.writing
stopNode h
wait "${runner[eight]}" && fail "a program that has lost its snapshot ended well"
says eight "its snapshot was in the memory of its vgpud, which was shut down" || fail "the program does not say so"
isGone "$VGPU_STORE/snapshots/eight" || fail "what was written of it is left"
beginToWrite nine write.manifest-named
stopNode h
isIn b "$VGPU_STORE/snapshots/nine" disk || fail "it is in '$(place b "$VGPU_STORE/snapshots/nine")'"
succeeds ctl b resume nine
memoryIsRight nine
endContents nine

# The disk is full when it is to be written: it stays in memory, and is resumed from there.
mkdir "$dir/disk"
mount -t tmpfs -o size=12m vgpu-test "$dir/disk" 2>/dev/null || skip "no permission to mount a small disk"
startNode g --pinned 48MiB
startContents g six 24
succeeds ctl g suspend six --background --to "$dir/disk/six"
waitUntil says g "stays in memory: it could not be written: .*No space left on device"
isIn g "$dir/disk/six" memory || fail "it is in '$(place g "$dir/disk/six")'"
succeeds ctl g resume "$dir/disk/six"
memoryIsRight six
waitUntil isGone "$dir/disk/six"
endContents six

# It is written again while the program waits, and succeeds once the disk has room.
VGPU_WRITE_RETRY=1 startNode i --pinned 48MiB
startContents i ten 24
succeeds ctl i suspend ten --background --to "$dir/disk/ten"
waitUntil says i "stays in memory: it could not be written: .*No space left on device.* It is tried again in 1 s"
isIn i "$dir/disk/ten" memory || fail "it is in '$(place i "$dir/disk/ten")'"
mount -o remount,size=64m "$dir/disk"
waitUntil isIn i "$dir/disk/ten" disk
stopNode i
succeeds ctl b resume "$dir/disk/ten"
memoryIsRight ten
endContents ten
