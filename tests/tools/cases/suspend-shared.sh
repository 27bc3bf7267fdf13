# Sessions that share memory are suspended together, whichever of them is named, and resumed together, or not at all.
program=$tree/tests/programs/ipc-memory
[ -x "$program" ] || skip "no $program"
startNode a
startNode b

# startSharing WHEN [NODE]: runs the program to its pause point; $pid and $child are its processes.
startSharing() {
  local node=${2:-a}
  rm -f "$dir/pause.reached" "$dir/pause.go"
  VGPU_PAUSE_FILE=$dir/pause ctl "$node" run -- "$program" "$1" >"$dir/shares.log" 2>&1 &
  runner=$!
  waitUntil test -e "$dir/pause.reached"
  pid=$(cat "$dir/pause.reached")
  ctl "$node" ps --json >"$dir/report.log"
  read -r child childId < <(python3 -c '
import json, sys
print(*[v for s in json.load(sys.stdin) if s["pid"] != int(sys.argv[1]) for v in (s["pid"], s["session"])])' "$pid" <"$dir/report.log")
  [ -n "$child" ] || fail "the child has no session of its own"
}
# stateOf NODE PID
stateOf() { ctl "$1" ps --json | python3 -c '
import json, sys
print(*[s["state"] for s in json.load(sys.stdin) if s["pid"] == int(sys.argv[1])])' "$2"; }
bothAre() { [ "$(stateOf "$2" "$pid") $(stateOf "$2" "$child")" = "$1 $1" ]; }
bothRun() { bothAre running "$1" || fail "they are $(stateOf "$1" "$pid") and $(stateOf "$1" "$child") on node $1"; }
goOn() {
  : >"$dir/pause.go"
  wait "$runner" || fail "the program returned $?"
  says shares 'ipc-memory: ok' || fail "the program was wrong"
}

startSharing hold
succeeds ctl a explain "pid:$pid"
grep -q "delayed shared objects: .*pid $child) has opened memory of it; sessions that share are suspended together" "$dir/succeeds.log" ||
  fail "explain says: $(cat "$dir/succeeds.log")"
refused "shares memory or events with others.* (ipc-memory, pid $child) has opened memory of it" ctl a snapshot "pid:$pid" --to "$dir/x"
refused "shares memory or events with others.*it has opened memory of session .* (ipc-memory, pid $pid)" ctl a migrate "pid:$child" --to "unix:$dir/b/vgpud.sock"

# The child, which is not named, does not close its gate: both go on, and no files are left.
stopProcess "$child"
refused "program $child did not close its gate in 1 s" ctl a suspend "pid:$pid" --timeout 1 --to "$dir/x"
kill -CONT "$child"
bothRun a
waitUntil isGone "$dir/x"
mkdir "$dir/y"
stopProcess "$pid"
refused "program $pid did not close its gate in 1 s" ctl a suspend "pid:$child" --timeout 1 --to "$dir/y"
kill -CONT "$pid"
bothRun a
waitUntil isEmpty "$dir/y"

# The caller is killed while they are being saved.
VGPU_FAULT_POINT=suspend.asked ctl a suspend "pid:$pid" --to "$dir/x" >"$dir/killed.log" 2>&1 && fail "vgpuctl was not killed"
waitUntil bothAre running a
waitUntil isGone "$dir/x"

# Both are suspended, and neither is resumed without the other.
succeeds ctl a suspend "pid:$pid" --to "$dir/x"
grep -q "^  with $childId (ipc-memory, pid $child), which shares with it: " "$dir/succeeds.log" || fail "suspend does not name the other"
bothAre suspended a || fail "they are $(stateOf a "$pid") and $(stateOf a "$child")"
[ "$(du -sb "$dir/x/sessions/$childId" | cut -f1)" -lt "$(du -sb --exclude=sessions "$dir/x" | cut -f1)" ] ||
  fail "the snapshot has the shared memory twice"
refused "shares memory or events with session [a-z0-9]*, which was suspended together with it" ctl b resume "$dir/x/sessions/$childId"
mv "$dir/x/sessions" "$dir/others"
refused "shares memory or events with session $childId, which was suspended together with it" ctl b resume "$dir/x"
mv "$dir/others" "$dir/x/sessions"
bothAre suspended a || fail "they are $(stateOf a "$pid") and $(stateOf a "$child")"
# A part of the other session's snapshot is damaged.
cp -r "$dir/x" "$dir/bad"
printf 'damage' | dd of="$dir/bad/sessions/$childId/objects" bs=1 seek=60 conv=notrunc 2>"$dir/dd.log"
refused "file objects: checksum" ctl b resume "$dir/bad"
bothAre suspended a || fail "they are $(stateOf a "$pid") and $(stateOf a "$child")"
succeeds ctl b resume "$dir/x"
bothRun b
goOn

# The other session is named, and the snapshot is in a store.
export VGPU_STORE=$dir/store
startSharing hold
succeeds ctl a suspend "pid:$child" --name both
bothAre suspended a || fail "they are $(stateOf a "$pid") and $(stateOf a "$child")"
succeeds ctl a snapshots verify both
mv "$VGPU_STORE/snapshots/both/sessions" "$dir/others"
refused "snapshot both cannot be resumed: the snapshot of session [a-z0-9]*, which shares memory or events with it, is missing" ctl a snapshots verify both
mv "$dir/others" "$VGPU_STORE/snapshots/both/sessions"
for part in objects pending-calls; do
  file=$(echo "$VGPU_STORE"/snapshots/both/sessions/*/"$part")
  mv "$file" "$dir/part"
  cp "$VGPU_STORE/snapshots/both/$part" "$file"
  refused "snapshot both cannot be resumed: .*sessions.*file $part: \(length\|checksum\)" ctl a snapshots verify both
  mv "$dir/part" "$file"
done
refused "contains several sessions that share memory or events" ctl a snapshots export both "$dir/archive"
succeeds ctl a resume both
bothRun a
goOn
succeeds ctl a snapshots rm both
isEmpty "$VGPU_STORE/snapshots" || fail "the store keeps what was removed"

# One of them is already saved while the other is being saved: a collection at that moment keeps the first one's chunks, although its save
# has released its packs, and does not wait for the other. The child is named, so the parent's snapshot is the one in sessions/.
export VGPU_FAULT_LOG=$dir/faults
standsAt() { grep -qs "^$1 [^ ]* $2 stop\$" "$dir/faults"; }
isSaved() { grep -qs "^suspend.manifest-named [^ ]* $1 hit\$" "$dir/faults" && grep -qs "^suspend.saved " "$dir/faults"; }
for first in parent child; do
  rm -f "$dir/faults"
  VGPU_FAULT_POINT=suspend.manifest-written:stop startNode c
  startSharing hold c
  declare -A workers=([parent]=$(field c "$pid" workerPid) [child]=$(field c "$child" workerPid))
  ctl c suspend "pid:$child" --name "$first-first" >"$dir/together.log" 2>&1 &
  suspend=$!
  for one in parent child; do waitUntil standsAt suspend.manifest-written "${workers[$one]}"; done
  letGo "${workers[$first]}"
  waitUntil isSaved "${workers[$first]}"
  succeeds ctl c snapshots gc
  # Neither is damaged. Once the child is saved, its snapshot has that name while the parent's part is still being written.
  succeeds ctl c snapshots verify
  if [ "$first" = child ]; then
    grep -q "^snapshot child-first is being written, and was not read\$" "$dir/succeeds.log" ||
      fail "verify says: $(cat "$dir/succeeds.log")"
    succeeds ctl c snapshots verify "$VGPU_STORE/snapshots/child-first"
  fi
  unset "workers[$first]"
  letGo "${workers[@]}"
  wait "$suspend" || fail "the suspend beside a collection failed: $(cat "$dir/together.log")"
  succeeds ctl c snapshots verify "$first-first"
  succeeds ctl c snapshots gc
  succeeds ctl b resume "$first-first"
  goOn
  succeeds ctl c snapshots rm "$first-first"
  stopNode c
done
unset VGPU_FAULT_LOG

# Their snapshots are in memory: when they run again, or the node has ended, nothing of these is left, and a collection has nothing to
# refuse.
startNode m --pinned 128MiB
startSharing hold m
succeeds ctl m suspend "pid:$pid" --to memory --name held
succeeds ctl m snapshots gc
succeeds ctl m resume held
bothRun m
waitUntil isGone "$VGPU_STORE/snapshots/held"
succeeds ctl m snapshots gc
goOn
startSharing hold m
succeeds ctl m suspend "pid:$child" --to memory --name ended
stopNode m
isGone "$VGPU_STORE/snapshots/ended" || fail "a snapshot is left of a daemon that was ended"
: >"$dir/pause.go"
wait "$runner" && fail "programs that have lost their snapshots ended well"

# In the background: the child's snapshot is written first, and then the parent's, in whose folder it is. If the parent's is not written,
# nothing is left when they run again, or the node has ended.
export VGPU_FAULT_LOG=$dir/faults
writers() { sed -n 's/^write.manifest-written [^ ]* \([0-9]*\) stop$/\1/p' "$dir/faults" 2>/dev/null; }
stand() { [ "$(writers | wc -l)" = "$1" ]; }
isIn() { ctl n snapshots ls --json | python3 -c '
import json, sys
sys.exit([s["place"] for s in json.load(sys.stdin) if s["snapshot"] == sys.argv[1]] != [sys.argv[2]])' "$1" "$2"; }
# beginToWrite NAME: on node n, where the writer of the child's snapshot is stopped before it renames the manifest into place.
beginToWrite() {
  rm -f "$dir/faults"
  VGPU_FAULT_POINT=write.manifest-written:stop startNode n --pinned 128MiB
  startSharing hold n
  name=$1 folder=$VGPU_STORE/snapshots/$1
  succeeds ctl n suspend "pid:$pid" --background --name "$name"
  waitUntil stand 1
  inner=$(writers)
  [[ " $(readlink /proc/"$inner"/fd/* | tr '\n' ' ')" = *" $folder/sessions/$childId/writing "* ]] ||
    fail "the child's is not written first"
  ctl n snapshots ls | finds "^$name .* memory .*, being written: " || fail "ls says: $(ctl n snapshots ls)"
}
for end in resume stop; do
  beginToWrite "half-$end"
  letGo "$inner"
  waitUntil says n "snapshot $folder/sessions/$childId of .* is on disk"
  [ -e "$folder/sessions/$childId/manifest.json" ] || fail "the snapshot of the child is not there"
  waitUntil stand 2
  isIn "$name" memory || fail "a part is not on disk, and ls says that all is"
  kill -KILL "$(writers | tail -n 1)"
  waitUntil says n "snapshot $folder of .* stays in memory: it could not be written"
  if [ "$end" = resume ]; then
    succeeds ctl n resume "$name"
    bothRun n
    waitUntil isGone "$folder"
    succeeds ctl n snapshots gc
    goOn
    stopNode n
  else
    stopNode n
    isGone "$folder" || fail "of a snapshot that is lost there is left: $(find "$folder")"
    : >"$dir/pause.go"
    wait "$runner" && fail "programs that have lost their snapshots ended well"
  fi
done

# If the child's snapshot is not written, the parent's is not either: a half never looks complete.
for end in resume kill; do
  beginToWrite "none-$end"
  kill -KILL "$inner"
  waitUntil says n "snapshot $folder/sessions/$childId of .* stays in memory: it could not be written"
  waitUntil says n "snapshot $folder of .* stays in memory: it could not be written: "
  isIn "$name" memory || fail "a part is not on disk, and ls says that all is"
  succeeds ctl n snapshots verify "$name"
  grep -q "^the memory of session $childId of snapshot $name is not on disk yet, and was not read\$" "$dir/succeeds.log" ||
    fail "verify says: $(cat "$dir/succeeds.log")"
  if [ "$end" = resume ]; then
    succeeds ctl n resume "$name"
    bothRun n
    waitUntil isGone "$folder"
    goOn
    stopNode n
  else
    kill -KILL "${daemon[n]}"
    : >"$dir/pause.go"
    wait "$runner" && fail "programs that have lost their snapshots ended well"
    waitUntil isIn "$name" lost
    refused "snapshot $name cannot be resumed: session $childId was in the memory of a vgpud that has ended" ctl b snapshots verify "$name"
    succeeds ctl b snapshots gc
    isGone "$folder" || fail "of a snapshot that is lost there is left: $(find "$folder")"
  fi
done

# They run again, or their daemon is ended, before the write of the parent's snapshot has begun: both are still written.
for end in resume stop; do
  beginToWrite "late-$end"
  if [ "$end" = resume ]; then
    succeeds ctl n resume "$name"
    bothRun n
  else
    kill -TERM "${daemon[n]}"
  fi
  letGo "$inner"
  waitUntil stand 2
  letGo "$(writers | tail -n 1)"
  waitUntil isIn "$name" disk
  succeeds ctl b snapshots verify "$name"
  if [ "$end" = resume ]; then
    goOn
    stopNode n
  else
    endsCleanly n
    succeeds ctl b resume "$name"
    bothRun b
    goOn
  fi
done
unset VGPU_FAULT_LOG

# Memory that the parent has freed cannot be given to the child again.
startSharing freed
refused "has opened memory of a session that has freed it or has ended" ctl a suspend "pid:$child" --to "$dir/z"
refused "refused shared objects: .*has opened memory of a session that has freed it or has ended" ctl a explain "pid:$child"
bothRun a
waitUntil isGone "$dir/z"
goOn
