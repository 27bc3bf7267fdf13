# Two processes of one program have sessions: they are suspended, saved, restored and resumed together, or not at all.
export VGPU_STORE=$dir/store
startNode a
startNode b
needCriu a

# startPair: starts contents twice from one script, as one and two, with 4 and 2 MiB; the script's output is in pair.log.
cat >"$dir/pair" <<'S'
#!/bin/bash
VGPU_SESSION_NAME=two "$1" --serve random 2 <"$4" >>"$5" &
VGPU_SESSION_NAME=one "$1" --serve random 4 <"$2" >>"$3"
echo "one returned $?"
wait %1
echo "two returned $?"
S
startPair() {
  local file
  rm -f "$dir/two.in"
  mkfifo "$dir/two.in"
  : >"$dir/two.log"
  startScript "$1" one "$dir/pair" "$dir/two.in" "$dir/two.log"
  exec {file}<>"$dir/two.in"
  commands[two]=$file
  waitUntil says two ready
  one=$(pidOf one) two=$(pidOf two)
}
# bothAre STATE NODE
bothAre() { hasState "$2" one "$1" && hasState "$2" two "$1"; }
bothWork() {
  bothAre running "$1" || fail "one is $(field "$1" one state), and two $(field "$1" two state)"
  memoryIsRight one
  memoryIsRight two
}
endPair() {
  echo quit >&"${commands[one]}"
  echo quit >&"${commands[two]}"
  waitUntil says one-script '^two returned 0'
  says one-script '^one returned 0' || fail "one did not end as it should"
  closeCommands one
  closeCommands two
}
listsNeither() { listsNot "$1" one && listsNot "$1" two; }

startPair a
bothWork a
tell two change changed  # a difference from `one`
# The second process cannot be suspended, because it is stopped.
stopProcess "$two"
refused "program $two did not close its gate in 1 s" \
  ctl a suspend one --process --timeout 1 --to "$dir/refused"
kill -CONT "$two"
waitUntil isGone "$dir/refused"
bothWork a
# It is already suspended by itself.
succeeds ctl a suspend two --to "$dir/alone"
refused "session [a-z0-9]* (pid $two) is suspended: it can be saved with its process only while it runs" \
  ctl a suspend one --process --to "$dir/refused"
succeeds ctl a resume "$dir/alone"
bothWork a

# Both are saved, whichever of them is named, and `inspect` says so.
succeeds ctl a suspend two --process --to "$dir/both"
waitUntil listsNeither a
waitUntil ended "$one"
waitUntil ended "$two"
id=$(ctl a inspect "$dir/both" --json | python3 -c '
import json, sys
print(*[s["session"] for s in json.load(sys.stdin)["process"]["sessions"]])')
[ -d "$dir/both/sessions/$id" ] || fail "the snapshot has no folder of session $id"
ctl a inspect "$dir/both" | finds "^and  *session $id of process $one" || fail "inspect does not show the other session"

# A part of the other session is damaged: nothing is restored, and the snapshot is unchanged.
cp -r "$dir/both" "$dir/bad"
printf 'damage' | dd of="$dir/bad/sessions/$id/pack-00" bs=1 seek=100 conv=notrunc 2>"$dir/dd.log"
refused "file pack-00: chunk" ctl b resume "$dir/bad"
waitUntil ended "$one"
waitUntil ended "$two"
waitUntil listsNeither b
waitUntil isEmpty "$dir/b/sessions"
rm -rf "$dir/bad"
cp -r "$dir/both" "$dir/bad"
printf ' ' >>"$dir/bad/sessions/$id/manifest.json"
refused "sessions/$id: file manifest.json: length" ctl b resume "$dir/bad"
rm -rf "$dir/bad/sessions"
refused "$dir/bad/sessions/$id" ctl b resume "$dir/bad"

succeeds ctl b resume "$dir/both"
[ "$(field b one pid) $(field b two pid)" = "$one $two" ] || fail "the programs have other process ids"
bothWork b
tell one change changed
succeeds ctl b snapshot one --process --name live
bothWork b

# Saved to the store, which finds damage in either of them, and removes both.
succeeds ctl b suspend one --process --name stored
succeeds ctl b snapshots verify stored
cp -r "$VGPU_STORE" "$dir/whole"
chunks=$(echo "$VGPU_STORE"/snapshots/stored/sessions/*/chunks)
printf 'damage' | dd of="$chunks" bs=1 seek=20 conv=notrunc 2>"$dir/dd.log"
refused "snapshot stored cannot be resumed: .*file chunks: checksum" ctl b snapshots verify stored
refused "nothing is removed from the store: .*file chunks: checksum" ctl b snapshots gc
rm -r "$VGPU_STORE"
mv "$dir/whole" "$VGPU_STORE"
# Chunks that only `two` has, whose snapshot the suspend of `one` did not know, are needed too.
succeeds ctl b snapshots rm live
succeeds ctl b snapshots gc
succeeds ctl b snapshots verify stored
succeeds ctl a resume stored
bothWork a

# vgpuctl is killed during a suspend: one command lets all processes go on.
for point in process.suspended process.parked process.saved process.named; do
  VGPU_FAULT_POINT=$point ctl a suspend one --process --to "$dir/$point" >"$dir/killed.log" 2>&1 && fail "not killed at $point"
  waitUntil hasState a two "$([ "$point" = process.suspended ] && echo suspended)"
  succeeds ctl a resume "$dir/$point"
  bothWork a
  rm -rf "${dir:?}/$point"
done

# Restored, but no daemon has been told: no process of them is left, and they can be restored again.
succeeds ctl a suspend one --process --to "$dir/restored"
VGPU_FAULT_POINT=process.restored ctl b resume "$dir/restored" >"$dir/killed.log" 2>&1 && fail "resume was not killed"
waitUntil ended "$one"
waitUntil ended "$two"
succeeds ctl b resume "$dir/restored"
bothWork b

# A copy has both; it ends with the parent of its root process.
succeeds ctl a clone "$dir/restored"
grep -q "(two, pid [0-9]*) is a copy" "$dir/succeeds.log" || fail "it does not say that both are copied: $(cat "$dir/succeeds.log")"
bothAre running a || fail "one is $(field a one state), and two $(field a two state)"
copies="$(field a one pid) $(field a two pid)"
script=$(awk '/^PPid:/ { print $2 }' "/proc/${copies% *}/status")
kill -KILL "$(awk '/^PPid:/ { print $2 }' "/proc/$script/status")"
for copy in $copies; do waitUntil ended "$copy"; done
waitUntil listsNeither a
bothWork b
endPair
succeeds ctl a snapshots rm stored
succeeds ctl a snapshots gc
isEmpty "$VGPU_STORE/snapshots" || fail "the store keeps what was removed"
stopNode a
stopNode b
