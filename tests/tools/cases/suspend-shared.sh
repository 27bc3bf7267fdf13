# Sessions that share memory are suspended together, whichever of them is named, and resumed together, or nothing happens to any.
program=$tree/tests/programs/ipc-memory
[ -x "$program" ] || skip "no $program"
startNode a
startNode b

# startSharing WHEN [NODE]: the program at its pause point; $pid and $child are its processes.
startSharing() {
  local node=${2:-a}
  rm -f "$dir/pause.reached" "$dir/pause.go"
  VGPU_PAUSE_FILE=$dir/pause limit=600 ctl "$node" run -- "$program" "$1" >"$dir/shares.log" 2>&1 &
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
grep -q "delayed what it shares: .*pid $child) has memory of it; all that share are suspended together" "$dir/succeeds.log" ||
  fail "explain says: $(cat "$dir/succeeds.log")"
refused "shares with others.* (ipc-memory, pid $child) has memory of it" ctl a snapshot "pid:$pid" --to "$dir/x"
refused "shares with others.*it has memory of session .* (ipc-memory, pid $pid)" ctl a migrate "pid:$child" --to "unix:$dir/b/vgpud.sock"

# The child, which is not named, does not close its gate: both go on, and nothing is left.
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

# Whoever asked gives up while they are being saved.
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
# A part of the other's is damaged.
cp -r "$dir/x" "$dir/bad"
printf 'damage' | dd of="$dir/bad/sessions/$childId/objects" bs=1 seek=60 conv=notrunc 2>"$dir/dd.log"
refused "file objects: checksum" ctl b resume "$dir/bad"
bothAre suspended a || fail "they are $(stateOf a "$pid") and $(stateOf a "$child")"
succeeds ctl b resume "$dir/x"
bothRun b
goOn

# The other one is named, and the snapshot is in a store.
export VGPU_STORE=$dir/store
startSharing hold
succeeds ctl a suspend "pid:$child" --name both
bothAre suspended a || fail "they are $(stateOf a "$pid") and $(stateOf a "$child")"
succeeds ctl a snapshots verify both
mv "$VGPU_STORE/snapshots/both/sessions" "$dir/others"
refused "snapshot both cannot be resumed: the snapshot of session [a-z0-9]*, with which it shares, is missing" ctl a snapshots verify both
mv "$dir/others" "$VGPU_STORE/snapshots/both/sessions"
for part in objects pending-calls; do
  file=$(echo "$VGPU_STORE"/snapshots/both/sessions/*/"$part")
  mv "$file" "$dir/part"
  cp "$VGPU_STORE/snapshots/both/$part" "$file"
  refused "snapshot both cannot be resumed: .*sessions.*file $part: \(length\|checksum\)" ctl a snapshots verify both
  mv "$dir/part" "$file"
done
refused "has several sessions, which share" ctl a snapshots export both "$dir/archive"
succeeds ctl a resume both
bothRun a
goOn
succeeds ctl a snapshots rm both
isEmpty "$VGPU_STORE/snapshots" || fail "the store keeps what was removed"

# One of them is saved already while the other one is being saved: a collection at that moment keeps what the first one needs, whose save
# has let go of its packs, and does not wait for the other. The child is named, so the parent's snapshot is the one in sessions/.
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
  kill -CONT "${workers[$first]}"
  waitUntil isSaved "${workers[$first]}"
  succeeds ctl c snapshots gc
  # Nothing of them is damaged. With the child's there is a snapshot of that name, of which the parent's part is being written.
  succeeds ctl c snapshots verify
  if [ "$first" = child ]; then
    grep -q "^snapshot child-first is being written, and was not read\$" "$dir/succeeds.log" ||
      fail "verify says: $(cat "$dir/succeeds.log")"
    succeeds ctl c snapshots verify "$VGPU_STORE/snapshots/child-first"
  fi
  unset "workers[$first]"
  kill -CONT "${workers[@]}"
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

# In the background, where the child's comes to disk and the parent's, in whose folder it is, does not: nothing is left when they run
# again, or the node has ended.
writerOf() {  # NODE FOLDER
  local writer
  for writer in $(sed -n 's/^write.manifest-written [^ ]* \([0-9]*\) stop$/\1/p' "$dir/faults"); do
    [[ " $(readlink /proc/"$writer"/fd/* 2>/dev/null | tr '\n' ' ')" = *" $2/writing "* ]] && echo "$writer"
  done
  return 0
}
bothStand() { [ "$(grep -cs '^write.manifest-written .* stop$' "$dir/faults")" = 2 ]; }
export VGPU_FAULT_LOG=$dir/faults
for end in resume stop; do
  rm -f "$dir/faults"
  VGPU_FAULT_POINT=write.manifest-written:stop startNode n --pinned 128MiB
  startSharing hold n
  name=half-$end folder=$VGPU_STORE/snapshots/half-$end
  succeeds ctl n suspend "pid:$pid" --background --name "$name"
  waitUntil bothStand
  outer=$(writerOf n "$folder") inner=$(writerOf n "$folder/sessions/$childId")
  [ -n "$outer" ] && [ -n "$inner" ] || fail "the processes that write are not found: $(cat "$dir/faults")"
  kill -KILL "$outer"
  waitUntil says n "snapshot $folder of .* stays in memory: it could not be written"
  kill -CONT "$inner"
  waitUntil says n "snapshot $folder/sessions/$childId of .* is on disk"
  [ -e "$folder/sessions/$childId/manifest.json" ] || fail "the snapshot of the child is not there"
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
unset VGPU_FAULT_LOG

# What the parent has freed nobody could give to the child again.
startSharing freed
refused "has memory of a session that has freed it or has ended" ctl a suspend "pid:$child" --to "$dir/z"
refused "refused what it shares: .*has memory of a session that has freed it or has ended" ctl a explain "pid:$child"
bothRun a
waitUntil isGone "$dir/z"
goOn
