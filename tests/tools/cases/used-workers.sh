# A worker whose program has ended serves the next program, and only that one; it waits only for a while.
waiting() { ctl "$1" ps --workers --json | python3 -c '
import json, sys
print(" ".join(str(w["pid"]) for w in json.load(sys.stdin) if w["session"] is None and w["used"] == (sys.argv[1] == "used")))' "$2"; }
hasUsed() { [ "$(waiting "$1" used)" = "$2" ]; }
isUsed() { waiting a used | tr ' ' '\n' | grep -qx "$1"; }
endDouble() { kill -KILL "${double[$1]}"; waitUntil listsNot a "$1"; }

startNode a --warm 1 --recycle 60
startDouble a one
worker=$(field a one workerPid)
endDouble one
waitUntil hasUsed a "$worker"
ctl a ps --workers | finds "$worker (used)" || fail "people are not told"

# A used worker is preferred to a fresh one.
startDouble a two
[ "$(field a two workerPid)" = "$worker" ] || fail "another worker serves than the one that was used"
stillWorks a two

# A session that was suspended is resumed in a fresh worker, and its old worker serves other sessions, like that of a program that has
# ended. A fresh one waits beside them.
succeeds ctl a suspend two --to "$dir/x"
waitUntil isUsed "$worker"
startDouble a three
worker=$(field a three workerPid)
endDouble three
waitUntil isUsed "$worker"
hasNew() { [ -n "$(waiting a new)" ]; }
waitUntil hasNew
succeeds ctl a resume "$dir/x"
[ "$(field a two workerPid)" != "$worker" ] || fail "a session was restored in a worker that had served another program"
stillWorks a two

# Waiting workers that die are not missed.
for worker in $(waiting a used); do kill -KILL "$worker"; done
waitUntil hasUsed a ""
startDouble a four
stillWorks a four

# A worker that has opened another session's memory serves no other program.
program=$tree/tests/programs/ipc-memory
if [ -x "$program" ]; then
  succeeds ctl a run -- "$program"
  waitUntil says a 'is not reused: its session has opened an object that another session shares'
fi

# It waits as long as it was told, or not at all.
startNode b --warm 1 --recycle 3
VGPU_NODE=unix:$dir/b/vgpud.sock "$doubleProgram" five >"$dir/five.log" 2>&1 &
double[five]=$!
waitUntil openedOrEnded five
kill -KILL "${double[five]}"
hasAny() { ctl b ps --workers | finds '(used)'; }  # as fast as can be: it waits for these seconds only
isAlone() { [ "$(ctl b ps --workers --json | grep -c '"pid"')" = 1 ]; }
waitUntil hasAny
waitUntil isAlone
startNode c --recycle 0
startDouble c six
worker=$(field c six workerPid)
kill -KILL "${double[six]}"
waitUntil ended "$worker"
expectUsage() { "$@" >"$dir/usage.log" 2>&1; [ $? = 2 ] || fail "not a usage error: $*"; }
expectUsage "$tree/bin/vgpud" --run-dir "$dir/d" --recycle -1
expectUsage "$tree/bin/vgpud" --run-dir "$dir/d" --recycle long
