# Copies of a saved program run beside it and beside each other: each has its own memory and session, sees its old process ids, and leaves
# nothing on the node when it ends.
export VGPU_STORE=$dir/store
startNode a
startNode b
needCriu a

# All copies share the named pipe for commands and the output file.
file=$dir/held.in
mkfifo "$file"
: >"$dir/held.log"
LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} "$tree/bin/vgpuctl" --node "unix:$dir/a/vgpud.sock" run --name held -- \
  "$tree/tests/programs/contents" --serve random 4 <"$file" >>"$dir/held.log" 2>&1 &
runner[held]=$!
exec {input}>"$file"
commands[held]=$input
waitUntil says held ready
original=$(field a held pid)
succeeds ctl a snapshot held --name gpu
succeeds ctl a snapshot held --process --name model
memoryIsRight held

# sessionsOn NODE: prints "id pid" of each session, one per line.
sessionsOn() { ctl "$1" ps --json | python3 -c '
import json, sys
for s in json.load(sys.stdin): print(s["session"], s["pid"])'; }
pidsOn() { sessionsOn "$1" | cut -d ' ' -f 2; }
# only PID: stops all other copies.
only() {
  local pid
  for pid in $(pidsOn a) $(pidsOn b); do [ "$pid" = "$1" ] || stopProcess "$pid"; done
  kill -CONT "$1"
}
idsInside() { awk '/^NSpid:/ { print $NF }' "/proc/$1/status"; }

# Requests that cannot be met.
refused "there is no snapshot nothing" ctl a clone nothing
refused "does not contain the program's process, which a copy needs: make a snapshot with .vgpuctl snapshot SESSION --process" ctl a clone gpu
succeeds ctl a snapshots rm --force gpu
expectUsage() { "$@" >"$dir/usage.log" 2>&1; [ $? = 2 ] || fail "is no wrong usage: $*"; }
expectUsage ctl a clone model --count 0
expectUsage ctl a clone
VGPU_CRIU=$dir/none refused "VGPU_CRIU names" ctl a clone model

# The program itself goes on, with three copies on its node and two on another.
unshare --pid true 2>"$dir/unshare.log" || skip "$(cat "$dir/unshare.log")"
succeeds ctl a clone model --count 3
[ "$(grep -c 'held, pid [0-9]*) is a copy, and runs on emulated 0' "$dir/succeeds.log")" = 3 ] || fail "it does not say which: $(cat "$dir/succeeds.log")"
# The program's GPU memory still is as it was saved, so copies read it from there. Of the two on another node, one reads files.
copied() { [ "$(grep -c "MiB copied from another session" "$dir/succeeds.log")" = "$1" ] || fail "not $1 copied: $(cat "$dir/succeeds.log")"; }
copied 3
succeeds ctl b clone model --count 2
copied 1
[ "$(sessionsOn a | wc -l) $(sessionsOn b | wc -l)" = "4 2" ] || fail "not all are listed"
[ "$( (sessionsOn a; sessionsOn b) | cut -d ' ' -f 1 | sort -u | wc -l)" = 6 ] || fail "two have one session id"
for pid in $(pidsOn a) $(pidsOn b); do
  [ "$(idsInside "$pid")" = "$original" ] || fail "process $pid is process $(idsInside "$pid") for itself, not $original"
  only "$pid"
  memoryIsRight held
  tell held change changed
  memoryIsRight held
done
for pid in $(pidsOn a) $(pidsOn b); do
  only "$pid"
  memoryIsRight held
done

# A copy can be suspended and resumed like any session, also on another node, but not saved with its process.
copy=$(pidsOn a | grep -v "^$original$" | head -n 1)
only "$copy"
refused "it is in a pid namespace of its own, as the processes of a clone are" ctl a suspend "pid:$copy" --process --to "$dir/process"
succeeds ctl a suspend "pid:$copy" --to "$dir/copy"
succeeds ctl b resume "$dir/copy"
memoryIsRight held

# It ends as the program would, and nothing of it is left.
parent=$(awk '/^PPid:/ { print $2 }' "/proc/$copy/status")
echo quit >&"${commands[held]}"
waitUntil ended "$copy"
waitUntil ended "$parent"
areLeft() { [ "$(sessionsOn a | wc -l) $(sessionsOn b | wc -l)" = "$*" ]; }
waitUntil areLeft 3 2
# Killed from outside: all processes of its namespace end.
for copy in $(pidsOn b); do
  kill -CONT "$copy"
  parent=$(awk '/^PPid:/ { print $2 }' "/proc/$copy/status")
  kill -KILL "$parent"
  waitUntil ended "$copy"
done
waitUntil isEmpty "$dir/b/sessions"

# vgpuctl is killed before the node knows of the copy; and a copy that gets no GPU memory ends without affecting the others.
VGPU_FAULT_POINT=process.cloned ctl a clone model >"$dir/killed.log" 2>&1 && fail "clone was not killed"
noStray() { [ "$(processesOfRun contents | wc -l)" = "$(sessionsOn a | wc -l)" ]; }
waitUntil noStray
cp -r "$VGPU_STORE/snapshots/model" "$dir/model"
refused "its chunks are in a store of snapshots, but its directory is not in a store" ctl a clone "$dir/model" --count 2
waitUntil noStray
[ "$(sessionsOn a | wc -l)" = 3 ] || fail "another copy has ended too"
haveDirectories() { [ "$(ls "$dir/a/sessions" | wc -l)" = "$1" ]; }
waitUntil haveDirectories 3  # copies that were refused leave none

for pid in $(pidsOn a); do
  only "$pid"
  memoryIsRight held
  [ "$pid" != "$original" ] || continue
  echo quit >&"${commands[held]}"
  waitUntil listsNot a "$pid"  # a moment after its end
done
kill -CONT "$original"

# The worker that has the memory does not reply: everything is read from files.
worker=$(field a held workerPid)
stopProcess "$worker"
succeeds ctl a clone model
kill -CONT "$worker"
copied 0
copy=$(pidsOn a | grep -v "^$original$")
only "$copy"
memoryIsRight held
echo quit >&"${commands[held]}"
waitUntil ended "$copy"
kill -CONT "$original"
endContents held
stopNode a
stopNode b
