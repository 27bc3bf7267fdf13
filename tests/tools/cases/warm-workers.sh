# As many workers wait as --warm says, each with its memory use; one that is taken or dies is replaced.
workers() { ctl a ps --workers --json | python3 -c '
import json, sys
all = json.load(sys.stdin)
wanted = sys.argv[1]
found = [w for w in all if (w["session"] is None) == (wanted == "warm")]
for w in all:
    assert w["hostBytes"] > 0 and w["gpuBytes"] is not None, w
print(" ".join(str(w["pid"]) for w in found))' "$1"; }
warmCount() { [ "$(workers warm | wc -w)" = "$1" ]; }

startNode a --warm 3
waitUntil warmCount 3
first=$(workers warm)
startDouble a one
waitUntil warmCount 3
taken=$(field a one workerPid)
[[ " $first " == *" $taken "* ]] || fail "the session got worker $taken, which did not wait: $first"
[ "$(workers busy)" = "$taken" ] || fail "the session's worker is not listed"
victim=$(workers warm | cut -d ' ' -f 1)
kill -KILL "$victim"
replaced() { warmCount 3 && [[ " $(workers warm) " != *" $victim "* ]]; }
waitUntil replaced
ctl a ps --workers | finds '(warm)' || fail "people are not told"
stillWorks a one

# No worker waits: a session starts its own, and nothing is left behind.
startNode b --warm 0
startDouble b two
stillWorks b two
expectUsage() { "$@" >"$dir/usage.log" 2>&1; [ $? = 2 ] || fail "not a usage error: $*"; }
expectUsage "$tree/bin/vgpud" --run-dir "$dir/c" --warm 65
expectUsage "$tree/bin/vgpud" --run-dir "$dir/c" --warm some
