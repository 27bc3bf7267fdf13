# Known nodes: their resources, or why they do not reply; their names instead of addresses; and the best node for a program.
export VGPU_NODES=$dir/nodes
ctlOf() { timeout "$limit" "$tree/bin/vgpuctl" "$@"; }

refused "no nodes are known: list them in $dir/nodes" ctlOf nodes
succeeds "$tree/bin/vgpuctl" keys init
VGPU_EMULATED=memory=1GiB startNode a
VGPU_EMULATED=memory=2GiB startNode b --listen tls:127.0.0.1:0
VGPU_EMULATED=memory=512MiB,devices=2 startNode c
# A node that accepts connections but sends nothing, and an address where no process listens.
python3 -c '
import socket, sys, time
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
time.sleep(600)' >"$dir/silent.log" &
silent=$!
waitUntil says silent '^[0-9]'
cat >"$dir/nodes" <<NODES
# NAME ADDRESS
small   unix:$dir/a/vgpud.sock
far     $(addressOf b)
double  unix:$dir/c/vgpud.sock
silent  tcp:127.0.0.1:$(cat "$dir/silent.log")
gone    tcp:127.0.0.1:1
NODES

ctlOf nodes --timeout 3 --json >"$dir/listed.log" || fail "nodes --json returned $?"
python3 - "$dir/listed.log" <<'PY' || fail "nodes --json says something else"
import json, sys
nodes = {n["name"]: n for n in json.load(open(sys.argv[1]))}
assert list(nodes) == ["small", "far", "double", "silent", "gone"], nodes
for name, gpus, memory in (("small", 1, 1 << 30), ("far", 1, 2 << 30), ("double", 2, 512 << 20)):
    node = nodes[name]
    assert node["problem"] is None and len(node["gpus"]) == gpus and node["sessions"] == node["running"] == 0, node
    assert all(g["memoryBytes"] == memory and 0 < g["freeBytes"] <= memory for g in node["gpus"]), node
assert "within 3 s" in nodes["silent"]["problem"], nodes["silent"]
assert "nothing answers at tcp:127.0.0.1:1" in nodes["gone"]["problem"], nodes["gone"]
PY
ctlOf nodes --timeout 3 >"$dir/table.log" || fail "nodes returned $?"
says table "^small .* 1 .*1.0 GiB.*0 of 0" || fail "no line of small"
says table "^gone .*does not answer: nothing answers at" || fail "no line of gone"

# Names instead of addresses.
succeeds ctlOf --node far ps
succeeds env VGPU_NODE=small timeout "$limit" "$tree/bin/vgpuctl" ps
refused "node any is for .vgpuctl run. only" ctlOf --node any ps
refused "No such session\|no session" ctlOf --node small migrate x --to far

# The best node: which one `any` chooses, and which nodes it skips, with a reason.
sed -i '/^silent/d' "$dir/nodes"
kill "$silent"
runAny() { LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} ctlOf --node any run "$@" -- "$program" 1000 >"$dir/any.log" 2>&1; }
program=$tree/tests/programs/vector-add
[ -x "$program" ] || skip "no program vector-add"
runAny || fail "run --node any returned $?"
says any "node gone is skipped: nothing answers" || fail "it does not say that a node does not answer"
says any "the program runs on far (1 GPU, " || fail "it does not run where most memory is free"
runAny --gpus 2 || fail "run --node any --gpus 2 returned $?"
says any "the program runs on double (2 GPUs, " || fail "it does not run where two GPUs are"
refused "has 3 GPUs for this program" ctlOf --node any run --gpus 3 -- "$program"
refused "has 1 GPUs, but the program needs 2" ctlOf --node small run --gpus 2 -- "$program"
stopNode b
runAny || fail "run --node any returned $? with a node less"
says any "node far is skipped" || fail "it does not say that a node has gone"
says any "the program runs on small (1 GPU, " || fail "it does not run on the next best"
printf 'one two three\n' >"$dir/nodes"
refused "$dir/nodes, line 1: expected NAME ADDRESS" ctlOf nodes
waitUntil noRelays
stopNode a
stopNode c
