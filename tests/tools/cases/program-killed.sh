# A program that dies at any moment releases its worker, and its state directory is removed.
isFree() { ! ctl a ps --workers --json | python3 -c '
import json, sys
sys.exit(not [w for w in json.load(sys.stdin) if w["pid"] == int(sys.argv[1]) and w["session"]])' "$1"; }
startNode a
startDouble a one
worker=$(field a one workerPid) state=$(field a one directory)
kill -KILL "${double[one]}"
waitUntil isFree "$worker"
waitUntil isGone "$state"
waitUntil listsNot a one

# It dies while its session is being suspended.
startDouble a two
state=$(field a two directory)
suspendAtStandstill a two x
kill -KILL "${double[two]}"
wait "$suspend" && fail "a suspend without a program succeeded"
says suspend "(pid ${double[two]}) has ended" || fail "the caller was not told why"
waitUntil isFree "$worker"
waitUntil isGone "$state"
waitUntil isGone "$dir/x"

# It dies while it is suspended.
startDouble a three
state=$(field a three directory)
succeeds ctl a suspend three --to "$dir/y"
kill -KILL "${double[three]}"
waitUntil isGone "$state"
waitUntil listsNot a three
refused "has ended; the snapshot cannot be resumed into it" ctl a resume "$dir/y"

# It dies while it is asked to resume: the request is in its queue, but it no longer reads it.
startDouble a stopped
succeeds ctl a suspend stopped --to "$dir/w"
kill -STOP "${double[stopped]}"
ctl a resume "$dir/w" >"$dir/asked.log" 2>&1 &
asked=$!
waitUntil hasState a stopped resuming
sleep 0.2
kill -KILL "${double[stopped]}"
wait "$asked" && fail "a resume without a program succeeded"
says asked "has ended; the snapshot cannot be resumed into it" || fail "the caller was not told why"

# A child that it leaves behind does not keep its session alive.
VGPU_NODE=$dir/a DOUBLE_FORKS=1 "$doubleProgram" four >"$dir/four.log" 2>&1 &
double[four]=$!
waitUntil openedOrEnded four
worker=$(field a four workerPid)
kill -KILL "${double[four]}"
waitUntil isFree "$worker"

# Nor is the child taken for the program of a snapshot.
VGPU_NODE=$dir/a DOUBLE_FORKS=1 "$doubleProgram" five >"$dir/five.log" 2>&1 &
double[five]=$!
waitUntil openedOrEnded five
succeeds ctl a suspend five --to "$dir/z"
kill -KILL "${double[five]}"
refused "has ended; the snapshot cannot be resumed into it" ctl a resume "$dir/z"
