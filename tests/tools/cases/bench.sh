# vgpu-bench on the emulated device: without a native side, every figure is present. No figure is asserted.
[ -e "$tree/lib/vgpu/libcudart.so.13" ] || skip "no libcudart.so.13 in the tree"
[ -x "$tree/lib/vgpu/bench/calls" ] || skip "no case programs in the tree"
bench() { LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} XDG_RUNTIME_DIR=$dir timeout 150 "$tree/bin/vgpu-bench" --rounds 1 --device emulated "$@"; }

succeeds bench --quick --only calls --only programs --only "together/[12]" --json "$dir/figures.json" --csv "$dir/figures.csv"
says succeeds 'virtual runs only, without ratios' || fail "not said that there is no native side"
says succeeds '^| launch + wait ' || fail "no table"
python3 - "$dir/figures.json" "$dir/figures.csv" <<'P' || fail "the figures are not right"
import csv, json, sys
result = json.load(open(sys.argv[1]))
rows = {row["name"]: row for row in result["rows"]}
wanted = ["first CUDA call", "posted launch", "launch + wait", "idle synchronize", "event record + synchronize",
          "query of a finished event", "malloc + free, 1 MiB", "scan, steady", "scan, whole process", "2 programs at once",
          "resident after 1,000 launches"]
missing = [name for name in wanted if name not in rows]
assert not missing, missing
assert result["rounds"] == 1 and not result["native"] and result["node"].startswith("(emulated")
for row in rows.values():
    assert row["native"] is None and row["ratio"] is None and len(row["virtual"]["samples"]) == 1, row
    assert row["virtual"]["median"] > 0, row
assert sum(name.endswith(", steady") for name in rows) == 11, list(rows)
assert "steady" not in rows and not any(name.startswith("copy ") for name in rows), "a figure that nobody asked for"
assert [row["name"] for row in csv.DictReader(open(sys.argv[2]))] == list(rows)
P

# Any command, and the message if it cannot be run.
succeeds bench --json "$dir/command.json" -- /bin/sh -c 'echo figure,not,one; exit 0'
python3 -c 'import json, sys
names = [row["name"] for row in json.load(open(sys.argv[1]))["rows"]]
assert names == ["whole process", "memory, at its highest"], names' "$dir/command.json" || fail "a command's rows"
refused 'exit 3` exited with code 3' bench -- /bin/sh -c 'exit 3'
refused "there is no program $dir/nothing" bench -- "$dir/nothing"
refused "it needs an NVIDIA driver here" bench --svg "$dir/charts" -- /bin/true
refused "cannot write $dir/no/such" bench --csv "$dir/no/such" -- /bin/true
refused "no vgpud answers" "$tree/bin/vgpu-bench" --node "$dir/nobody" -- /bin/true

# Its daemons and workers end with it, even if it is killed.
noneLeft() { [ -z "$(processesOfRun vgpud)$(processesOfRun vgpu-worker)$(processesOfRun sleep)" ]; }
waitUntil noneLeft
bench -- /bin/sleep 60 >"$dir/killed.log" 2>&1 &
sleeps() { [ -n "$(processesOfRun sleep)" ]; }
waitUntil sleeps
kill -KILL "$(processesOfRun vgpu-bench)" || fail "no vgpu-bench to kill"
waitUntil noneLeft
noDirectories() { ! compgen -G "$dir/vgpu-run-*" >/dev/null; }
waitUntil noDirectories
