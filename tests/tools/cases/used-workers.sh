# A worker whose program has ended serves the next program, and nobody else; it waits for a while only.
waiting() { ctl "$1" ps --workers --json | python3 -c '
import json, sys
print(" ".join(str(w["pid"]) for w in json.load(sys.stdin) if w["session"] is None and w["used"] == (sys.argv[1] == "used")))' "$2"; }
hasUsed() { [ "$(waiting "$1" used)" = "$2" ]; }
endDouble() { kill -KILL "${double[$1]}"; waitUntil listsNot a "$1"; }

startNode a --warm 1 --recycle 60
startDouble a one
worker=$(field a one workerPid)
endDouble one
waitUntil hasUsed a "$worker"
ctl a ps --workers | grep -q "$worker (used)" || fail "people are not told"

# Rather than one that waits fresh.
startDouble a two
[ "$(field a two workerPid)" = "$worker" ] || fail "another worker serves than the one that was used"
stillWorks a two

# A session that was suspended goes on in a fresh one, and gives it back in its turn.
succeeds ctl a suspend two --to "$dir/x"
ended "$worker" || fail "the suspended session's worker lives"
startDouble a three
worker=$(field a three workerPid)
endDouble three
waitUntil hasUsed a "$worker"
succeeds ctl a resume "$dir/x"
[ "$(field a two workerPid)" != "$worker" ] || fail "a session was restored in a worker that had served another program"
stillWorks a two

# One that dies while it waits is missed by nobody.
kill -KILL "$worker"
waitUntil hasUsed a ""
startDouble a four
stillWorks a four

# It waits as long as it was told, or not at all.
startNode b --warm 1 --recycle 1
VGPU_NODE=unix:$dir/b/vgpud.sock "$doubleProgram" five >"$dir/five.log" 2>&1 &
double[five]=$!
waitUntil openedOrEnded five
kill -KILL "${double[five]}"
isUsed() { [ -n "$(waiting b used)" ]; }
isAlone() { [ "$(ctl b ps --workers --json | grep -c '"pid"')" = 1 ]; }
waitUntil isUsed
waitUntil isAlone
startNode c --recycle 0
startDouble c six
worker=$(field c six workerPid)
kill -KILL "${double[six]}"
waitUntil ended "$worker"
expectUsage() { "$@" >"$dir/usage.log" 2>&1; [ $? = 2 ] || fail "not a usage error: $*"; }
expectUsage "$tree/bin/vgpud" --run-dir "$dir/d" --recycle -1
expectUsage "$tree/bin/vgpud" --run-dir "$dir/d" --recycle long
