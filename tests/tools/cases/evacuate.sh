# All sessions of a node migrate while they run: with `vgpuctl evacuate`, and when vgpud is ended.
program=$tree/tests/programs/steady
[ -x "$program" ] || fail "there is no $program"
export VGPU_NODES=$dir/nodes
for node in a b; do startNode "$node" --listen tcp:127.0.0.1:0; done
startNode c
VGPU_EMULATED=architecture=80 startNode other
refused "no nodes are known" ctl a evacuate

# startSteady ADDRESS NAME
declare -A steady=()
startSteady() {
  LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} "$tree/bin/vgpuctl" --node "$1" run --name "$2" -- "$program" "$dir/end" >"$dir/$2.log" 2>&1 &
  steady[$2]=$!
}
startSteady "$(addressOf a)" far
startSteady "unix:$dir/a/vgpud.sock" near
waitUntil lists a far
waitUntil lists a near

# Known nodes: one that cannot take the sessions, one that can take both, and the node itself.
cat >"$dir/nodes" <<NODES
here     unix:$dir/a/vgpud.sock
unlike   unix:$dir/other/vgpud.sock
gone     tcp:127.0.0.1:1
neighbour unix:$dir/b/vgpud.sock
NODES
timeout $((3 * limit)) "$tree/bin/vgpuctl" evacuate "unix:$dir/a/vgpud.sock" --json >"$dir/evacuate.log" 2>"$dir/evacuate-said.log" ||
  fail "evacuate returned $?"
says evacuate-said "node gone is skipped" || fail "it does not say which node does not answer"
python3 - "$dir/evacuate.log" <<'PY' || fail "the report says something else"
import json, sys
report = {s["name"]: s for s in json.load(open(sys.argv[1]))}
assert set(report) == {"far", "near"}, report
for session in report.values():
    assert session["node"] == "neighbour" and session["blackoutSeconds"] > 0, session
PY
for name in far near; do waitUntil hasState b "$name" running; done
hasNoSessions() { [ "$(ctl "$1" ps --json)" = "[]" ]; }
waitUntil hasNoSessions a

# By an address, as to another host.
timeout $((3 * limit)) "$tree/bin/vgpuctl" evacuate "unix:$dir/b/vgpud.sock" --to "$(addressOf a)" >"$dir/back.log" 2>&1 ||
  fail "evacuate returned $?"
[ "$(grep -c "runs on tcp:.*; its program was held for" "$dir/back.log")" = 2 ] || fail "it does not say where they are"
for name in far near; do waitUntil hasState a "$name" running; done

# No node can take the sessions.
code=0
timeout $((3 * limit)) "$tree/bin/vgpuctl" evacuate "unix:$dir/a/vgpud.sock" --to "unix:$dir/other/vgpud.sock" >"$dir/nowhere.log" 2>&1 ||
  code=$?
[ "$code" = 1 ] || fail "an evacuation that leaves sessions returned $code"
says nowhere "(near) stays: .*migrate it to a node with the same model" || fail "it does not say why one stays"

# Ended by SIGTERM: the sessions leave, and no session is accepted meanwhile.
succeeds ctl a migrate near --to "unix:$dir/c/vgpud.sock"
worker=$(field c near workerPid)
stopProcess "$worker"
kill -TERM "${daemon[c]}"
waitUntil says c "sessions have 60 s to move to other nodes"
VGPU_NODE=unix:$dir/c/vgpud.sock "$doubleProgram" late >"$dir/late.log" 2>&1
says late "this vgpud is shutting down and takes no more sessions" || fail "a program that came late was not told why"
refused "this vgpud is shutting down and takes no more sessions" ctl a migrate far --to "unix:$dir/c/vgpud.sock"
hasState a far running || fail "far is $(field a far state) on a"
echo "going unix:$dir/c/vgpud.sock" >"$dir/going"
refused "node going is skipped: it is shutting down" env VGPU_NODES="$dir/going" timeout "$limit" "$tree/bin/vgpuctl" --node any run -- "$program"
grep -q "no node of .* has 1 GPU" "$dir/refused.log" || fail "a program was run on a node that is ending"
succeeds env VGPU_NODES="$dir/going" timeout "$limit" "$tree/bin/vgpuctl" nodes
says succeeds "^going .*it is shutting down" || fail "nodes does not say that one is ending"
kill -CONT "$worker"
endsCleanly c
runsElsewhere() { hasState a near running || hasState b near running; }
waitUntil runsElsewhere

# A second SIGTERM ends it at once, with its sessions. So does the first if sessions are to end with it.
startNode c
startDouble c stays
worker=$(field c stays workerPid)
stopProcess "$worker"
kill -TERM "${daemon[c]}"
waitUntil says c "sessions have 60 s to move to other nodes"
kill -TERM "${daemon[c]}"
endsCleanly c
says c "the evacuation was interrupted" || fail "the evacuation was not given up"
startNode c --evacuate 0
startDouble c ends
stopNode c
waitUntil says ends "^lost: its vgpud was shut down"
! says c "to move to other nodes" || fail "a session was to leave"

touch "$dir/end"
for name in far near; do
  waitUntil ended "${steady[$name]}"
  wait "${steady[$name]}" || fail "$name returned $?"
done
