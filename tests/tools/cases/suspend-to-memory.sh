# Suspends to pinned memory: the program's memory is restored from there; chunks without room go to the store; two sessions share one pool.
export VGPU_STORE=$dir/store
startNode a --pinned 48MiB
startContents a one 24
report() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1" <"$dir/report.log"; }
places() {
  ctl a snapshots ls --json | python3 -c '
import json, sys
print(*[s["snapshot"] + ":" + s["place"] for s in json.load(sys.stdin)])'
}
hasUsedWorker() { ctl "$1" ps --workers | finds "(used)"; }
toMemory() {
  ctl a suspend "$1" --to memory --name "$1" --json >"$dir/report.log" 2>"$dir/stored.log" ||
    fail "no suspend of $1 to memory: $(cat "$dir/stored.log")"
}

toMemory one
[ "$(report memoryBytes)" -ge $((24 << 20)) ] || fail "$(report memoryBytes) bytes went to memory"
[ "$(report storedBytes)" -lt $((1 << 20)) ] || fail "$(report storedBytes) bytes went to disk"
[ "$(places)" = one:memory ] || fail "the store lists $(places)"
isEmpty "$VGPU_STORE/packs" || fail "chunks went to the store"
succeeds ctl a snapshots verify
succeeds ctl a snapshots gc
refused "is the latest of session" ctl a snapshots rm one
refused "is in a vgpud's pinned memory" ctl a snapshots export one "$dir/archive"
isGone "$dir/archive" || fail "an export that was refused left a file"

# Only its own daemon can resume it; then nothing of the snapshot is left.
startNode b --pinned 64MiB
refused "in the memory of another vgpud" ctl b resume one
resumeFromMemory a one
[ "$(places)" = "" ] || fail "a snapshot is left: $(places)"
memoryIsRight one

# Chunks that are still in memory are not copied again; the one changed chunk of 2 MiB is. Its worker has been released by then.
tell one change changed
toMemory one
[ "$(report copiedBytes)" -le $((4 << 20)) ] || fail "$(report copiedBytes) bytes were copied again"
waitUntil hasUsedWorker a
resumeFromMemory a one
memoryIsRight one

# The first 24 MiB of a second session are the same and kept once. There is no room for all of the rest, which goes to the store.
toMemory one
startContents a two 56
toMemory two
inMemory=$(report memoryBytes) onDisk=$(report storedBytes)
[ "$inMemory" -ge $((44 << 20)) ] && [ "$inMemory" -le $((48 << 20)) ] || fail "$inMemory bytes of the second went to memory"
[ "$onDisk" -ge $((8 << 20)) ] && [ "$onDisk" -le $((13 << 20)) ] || fail "$onDisk bytes of the second went to disk"
succeeds ctl a snapshots gc
resumeFromMemory a one
resumeFromMemory a two
memoryIsRight one
memoryIsRight two
tell one change changed

# Chunks that are no longer needed make room; those still in memory are used, although the snapshot is on disk.
toMemory one
resumeFromMemory a one
succeeds ctl a suspend one --name durable
ctl a resume durable --json >"$dir/report.log"
[ "$(report memoryBytes)" -ge $((24 << 20)) ] || fail "only $(report memoryBytes) bytes of a snapshot on disk came from memory"
memoryIsRight one
endContents one

# A program that ends while it is suspended leaves nothing.
toMemory two
kill -KILL "$(field a two pid)"
waitUntil listsNot a two
waitUntil isGone "$VGPU_STORE/snapshots/two"

# A daemon without pinned memory, and one that asks for more than there is.
startNode c
startDouble c three
refused "this vgpud has no pinned memory" ctl c suspend three --to memory
stillWorks c three
code=0
"$tree/bin/vgpud" --run-dir "$dir/d" --device emulated --pinned 1000TiB >"$dir/d.log" 2>&1 || code=$?
[ "$code" = 1 ] || fail "a vgpud with more memory than there is returned $code"
says d "the machine has .* available" || fail "it does not say how much there is"
