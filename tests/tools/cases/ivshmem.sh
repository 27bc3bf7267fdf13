# Programs as in virtual machines, without an emulator: they reach only the memory that they share with their host. They are listed,
# suspended and resumed like others, end like others, and reach nothing of another machine.
shared() { guestFolder "$1"; }
memory() { echo "$(shared "$1")/memory"; }
startNode a --guest "one=$(memory one),512MiB" --guest "two=$(memory two),256MiB"
startNode b
succeedsInGuest() { "$(dirname "$0")/../in-guest" "$(shared "$1")" "${@:2}"; }
succeedsInGuest one true || skip "no namespaces can be made here"

# startInGuest MACHINE NAME MIB: as startContents.
startInGuest() {
  local file
  mkfifo "$dir/$2.in"
  "$(dirname "$0")/../in-guest" "$(shared "$1")" "$tree/bin/vgpuctl" --node "ivshmem:$(memory "$1")" run --name "$2" -- \
    "$tree/tests/programs/contents" --serve random "$3" <"$dir/$2.in" >"$dir/$2.log" 2>&1 &
  runner[$2]=$!
  exec {file}>"$dir/$2.in"
  commands[$2]=$file
  waitUntil says "$2" ready
}
[ -x "$tree/tests/programs/contents" ] || skip "no program contents"
guestRun() { succeedsInGuest "$1" timeout "$limit" "$tree/bin/vgpuctl" --node "ivshmem:$(memory "$1")" "${@:2}"; }

startInGuest one first 24
startInGuest one second 8
startInGuest two third 8
for name in first second third; do hasState a $name running || fail "$name is $(field a $name state)"; done

# Two machines cannot reach each other's memory, and a worker only maps its own session's piece of its machine's memory.
refused "cannot be opened: $(memory two): No such file" succeedsInGuest one "$tree/bin/vgpuctl" --node "ivshmem:$(memory two)" run -- /bin/true
mapped() {
  python3 - "$1" "$(memory "$2")" <<'PY'
import sys
first, slot = 2 << 20, 138 << 20
slots = set()
for line in open(f"/proc/{sys.argv[1]}/maps"):
    part = line.split()
    if len(part) == 6 and part[5].endswith("/memory"):
        begin, end = (int(x, 16) for x in part[0].split("-"))
        at = int(part[2], 16)
        assert part[5] == sys.argv[2], line
        assert at >= first, line
        slots.add((at - first) // slot)
        assert (at - first) // slot == (at + end - begin - 1 - first) // slot, line
assert len(slots) == 1, slots
print(*slots)
PY
}
one=$(mapped "$(field a first workerPid)" one) || fail "the worker of the first program maps more than its session"
other=$(mapped "$(field a second workerPid)" one) || fail "the worker of the second program maps more than its session"
[ "$one" != "$other" ] || fail "two sessions have one slot"
mapped "$(field a third workerPid)" two >"$dir/mapped.log" || fail "the worker of the third program maps more than its session"

# A machine with one slot has room for one session, and its programs see nothing of the host's.
refused "all 1 slots" guestRun two run -- "$tree/tests/programs/vector-add" 1000
refused "only .vgpuctl run. can use it" guestRun one ps
refused "has 1 GPUs, but the program needs 2" guestRun one run --gpus 2 -- "$tree/tests/programs/vector-add" 1000

# Suspended to disk while they run, resumed on another node, and back.
for name in first second third; do memoryIsRight $name; done
succeeds ctl a suspend first --to "$dir/snapshot"
succeeds ctl a suspend third --to "$dir/third"
succeeds ctl b resume "$dir/snapshot"
succeeds ctl a resume "$dir/third"
for name in first second third; do memoryIsRight $name; done
succeeds ctl b suspend first --to "$dir/again"
succeeds ctl a resume "$dir/again"
memoryIsRight first
succeeds ctl a migrate first --to "unix:$dir/b/vgpud.sock"
hasState b first running || fail "first does not run where it was moved to"
memoryIsRight first

# A killed program's session ends at once, and its slot becomes free.
programOf() { processesOfRun contents | while read -r pid; do grep -qsz -- "^VGPU_SESSION_NAME=$1$" "/proc/$pid/environ" && echo "$pid"; done; }
kill -KILL "$(programOf third)"
waitUntil listsNot a third
guestRun two run -- "$tree/tests/programs/vector-add" 1000 >"$dir/vector.log" 2>&1 || fail "the slot of a killed program is not free"

# A machine ends with all its processes at once: its next program gets a cleaned slot.
startInGuest two fourth 8
kill -KILL "${runner[fourth]}"
guestRun two run -- "$tree/tests/programs/vector-add" 1000 >"$dir/vector.log" 2>&1 || true
waitUntil listsNot a fourth
guestRun two run -- "$tree/tests/programs/vector-add" 1000 >"$dir/vector.log" 2>&1 || fail "the slot of an ended machine is not free"

# The process that looks for sessions is killed and replaced; existing sessions go on.
kill -KILL "$(pgrep -P "${daemon[a]}" vgpu-relay | head -n 1)"
waitUntil says a "it is started again"
memoryIsRight second
startInGuest two fifth 8
memoryIsRight fifth

for name in first second fifth; do endContents $name; done
stopNode a
stopNode b
waitUntil noRelays
