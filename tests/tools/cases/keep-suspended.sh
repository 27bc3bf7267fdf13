# Sessions that are suspended to memory and stay on their GPU until another program needs it (vgpud --keep-suspended).
export VGPU_STORE=$dir/store VGPU_EMULATED=memory=96MiB
worker() { field "$1" "$2" workerPid; }
kept() {
  ctl "$1" ps --workers --json | python3 -c '
import json, sys
print(*[w["pid"] for w in json.load(sys.stdin) if w["session"] == sys.argv[1]])' "$(field "$1" "$2" session)"
}
isKept() { [ -n "$(kept "$1" "$2")" ]; }
isNotKept() { [ -z "$(kept "$1" "$2")" ]; }

refused "names* its size with --pinned" "$tree/bin/vgpud" --run-dir "$dir/none" --device emulated --keep-suspended

# Resumed in the worker that it had, which has served no other program meanwhile.
startNode a --pinned 128MiB --keep-suspended
startContents a one 48
before=$(worker a one)
succeeds ctl a suspend one --to memory
[ "$(kept a one)" = "$before" ] || fail "the worker that keeps the session is '$(kept a one)', and it had $before"
resumeFromMemory a one
[ "$(worker a one)" = "$before" ] || fail "it goes on in another worker"
memoryIsRight one
tell one change changed
memoryIsRight one

# After such a resume the worker also finds host memory that a program registers.
runPaused a shared "$tree/tests/programs/shared-host-memory"
sharing=$(cat "$dir/shared.reached")
before=$(worker a "$sharing")
succeeds ctl a suspend "$sharing" --to memory
resumeFromMemory a "$sharing"
[ "$(worker a "$sharing")" = "$before" ] || fail "the program with shared memory goes on in another worker"
finishes shared
before=$(worker a one)

# Another program lacks memory: the kept session is dropped from the GPU, and later resumed from pinned memory. (Each worker has its own
# emulated device, so there is still not enough.)
succeeds ctl a suspend one --to memory
code=0
LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} ctl a run -- "$tree/tests/programs/contents" random 200 >"$dir/large.log" 2>&1 || code=$?
[ "$code" != 0 ] && says large "out of memory" || fail "a program with too much memory returned $code"
isNotKept a one || fail "a program finds no memory, and a suspended one keeps its own"
says a "leaves the GPU to others" || fail "the log does not say so"
resumeFromMemory a one
[ "$(worker a one)" != "$before" ] || fail "it goes on in a worker that had let go of it"
memoryIsRight one

# The worker that keeps the session is killed: the session is resumed without it.
succeeds ctl a suspend one --to memory
kill -KILL "$(kept a one)"
resumeFromMemory a one
memoryIsRight one

# Resumed by another daemon, from disk: this daemon drops what it kept.
succeeds ctl a suspend one --background --name written
startNode b
onDisk() { ctl a snapshots ls --json | finds '"place": *"disk"'; }
waitUntil onDisk
isKept a one || fail "it does not stay on the GPU until it is resumed"
succeeds ctl b resume written
memoryIsRight one
waitUntil listsNot a one
[ "$(ctl a ps --workers --json | grep -c '"session": *"')" = 0 ] || fail "a worker still has a session that went elsewhere"
endContents one

# A program that ends while it is suspended leaves nothing.
startContents a three 48
succeeds ctl a suspend three --to memory
kill -KILL "$(field a three pid)"
waitUntil listsNot a three
[ "$(ctl a ps --workers --json | grep -c '"session": *"')" = 0 ] || fail "a worker still has a session whose program has ended"
