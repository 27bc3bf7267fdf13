# Programs in virtual machines share pinned memory with their workers: pieces of the memory that the machine shares with its host, each
# owned by one session, which keeps it over a suspend and a migration. If no piece is free, or the host offers none, there are two copies.
guests=$(dirname "$0")/..
one=$(guestFolder one)
memory=$one/memory
size=$((1 << 30)) half=$((512 << 20))
"$guests/in-guest" "$one" true || skip "no namespaces can be made here"
[ -x "$tree/tests/programs/pinned-exchange" ] || skip "no program pinned-exchange"
startNode a --guest "one=$memory,1GiB"
startNode b
run() { timeout $((10 * limit)) "$guests/in-guest" "$one" "$tree/bin/vgpuctl" --node "ivshmem:$memory" run "$@"; }

# begins NAME PROGRAM [ARGUMENTS]: runs it in the background and waits until its pause point.
begins() {
  # shellcheck disable=SC2086
  VGPU_PAUSE_FILE=$one/$1 run --name "$1" -- "$tree/tests/programs/$2" ${3:-} >"$dir/$1.log" 2>&1 &
  runner[$1]=$!
  waitSeconds $((3 * limit)) pausesOrEnded "$1"  # with up to 900 MiB
  [ -e "$one/$1.reached" ] || fail "$1 has ended before its pause point"
}
pausesOrEnded() { [ -e "$one/$1.reached" ] || ended "${runner[$1]}"; }
# finishes NAME: lets it run to its end; its results must be right.
finishes() {
  local code=0
  : >"$one/$1.go"
  wait "${runner[$1]}" || code=$?
  [ "$code" = 0 ] || fail "$1 has returned $code"
}
programOf() { processesOfRun "$2" | while read -r pid; do grep -qsz -- "^VGPU_SESSION_NAME=$1$" "/proc/$pid/environ" && echo "$pid"; done; }
# pieces PID: a process's mappings of the second half of the shared memory, by address of the pinned memory: address, offset, bytes.
pieces() {
  python3 - "$1" $half <<'PY'
import sys
base, end = 0x1100_0000_0000, 0x1200_0000_0000
for line in open(f"/proc/{sys.argv[1]}/maps"):
    part = line.split()
    if len(part) == 6 and part[5].endswith("/memory"):  # compares only the file's name, because paths differ between namespaces
        first, behind = (int(x, 16) for x in part[0].split("-"))
        if base <= first < end:
            assert int(part[2], 16) >= int(sys.argv[2]), line
            print(f"{first:#x} {int(part[2], 16)} {behind - first}")
PY
}
workerHas() { [ "$(pieces "$(field "$1" "$2" workerPid)")" = "$3" ]; }
# apart FILE...: requires that these lists of pieces do not overlap.
apart() {
  cat "$@" | sort -n -k 2 | awk '$2 < end { exit 1 } { end = $2 + $3; any = 1 } END { if (!any) exit 1 }'
}
# lock SIDE: holds all locks of the second half on one side (host: 60, guest: 61) until it is ended.
lock() {
  python3 -u - "$memory" "$1" $half $size <<'PY' >"$dir/locks.log" 2>&1 &
import fcntl, struct, sys, time
path, bit, half, size = sys.argv[1], *(int(x) for x in sys.argv[2:])
with open(path, "r+b") as file:
    fcntl.fcntl(file, 37, struct.pack("hhxxxxqqixxxx", fcntl.F_WRLCK, 0, (1 << bit) + half, size - half, 0))  # F_OFD_SETLK
    print("locked")
    time.sleep(1000)
PY
  locking=$!
  waitUntil says locks locked
}
unlock() {
  kill "$locking"
  wait "$locking" 2>/dev/null
}
noSessions() { [ "$(ctl "$1" ps --json)" = "[]" ]; }
emptyBehind() {
  python3 - "$memory" $half <<'PY'
import os, sys
with open(sys.argv[1], "rb") as file:
    try: sys.exit(f"there is data at {os.lseek(file.fileno(), int(sys.argv[2]), os.SEEK_DATA)}")
    except OSError: pass
PY
}

# Program and worker map the same pieces at the same addresses, and two sessions share none.
begins first pinned-exchange 24
begins second pinned-exchange 12
for name in first second; do
  pieces "$(programOf $name pinned-exchange)" >"$dir/$name.pieces" || fail "$name maps something else"
  workerHas a $name "$(cat "$dir/$name.pieces")" || fail "the worker of $name has other pieces than the program"
done
apart "$dir/first.pieces" "$dir/second.pieces" || fail "two sessions have one place"

# While a session is suspended, its pieces remain its own, even if others start; another worker maps them again, also on another node and
# after a migration.
succeeds ctl a suspend first --to "$dir/snapshot"
begins third pinned-exchange 12
pieces "$(programOf third pinned-exchange)" >"$dir/third.pieces"
apart "$dir/first.pieces" "$dir/second.pieces" "$dir/third.pieces" || fail "a new session has a place of another one"
succeeds ctl b resume "$dir/snapshot"
workerHas b first "$(cat "$dir/first.pieces")" || fail "the worker that resumed the session has other pieces"
succeeds ctl a migrate second --to "unix:$dir/b/vgpud.sock"
workerHas b second "$(cat "$dir/second.pieces")" || fail "the worker to which the session has moved has other pieces"
succeeds ctl a snapshot third --to "$dir/third"
for name in first second third; do finishes $name; done
waitUntil noSessions b
waitUntil emptyBehind  # pinned memory of ended programs has no pages any more

# A killed program's pieces, which are most of the memory, become free.
begins killed pinned-exchange 300
kill -KILL "$(programOf killed pinned-exchange)"
waitUntil listsNot a killed
begins next pinned-exchange 300
pieces "$(programOf next pinned-exchange)" | awk '{ bytes += $3 } END { exit bytes < 400 * 1024 * 1024 }' ||
  fail "the places of a killed program are not free"
finishes next

# A program that asks for two copies gets them.
VGPU_PINNED_COPIES=1 begins copied pinned-later
[ -z "$(pieces "$(programOf copied pinned-later)")" ] || fail "a program that wants copies has pieces"
finishes copied

# Without free pieces, or if the host offers none, pinned memory has two copies, and works for programs that do not poll.
lock 61
begins without pinned-later
[ -z "$(pieces "$(programOf without pinned-later)")" ] || fail "a program has what another one of its machine has"
finishes without
unlock
lock 60
begins refused pinned-later
[ -z "$(pieces "$(programOf refused pinned-later)")" ] || fail "a program has what the host has not given it"
finishes refused
unlock
run -- "$tree/tests/programs/pinned-exchange" 20 >"$dir/again.log" 2>&1 || fail "what was locked is not free again"

# More than fits, and more than the memory's file system has pages for: the rest has two copies, also after a migration, and no process is
# killed by SIGBUS.
begins much pinned-exchange "900 copied"
pieces "$(programOf much pinned-exchange)" | awk '{ bytes += $3 } END { exit bytes < 256 * 1024 * 1024 }' || fail "not much is one memory"
succeeds ctl a suspend much --to "$dir/much"
succeeds ctl b resume "$dir/much"
finishes much
small=$(guestFolder small)
if mount -t tmpfs -o size=128m none "$small" 2>/dev/null; then
  stopNode a
  one=$small memory=$small/memory
  startNode a --guest "one=$memory,1GiB"
  begins full pinned-exchange "200 copied"
  pieces "$(programOf full pinned-exchange)" | awk '{ bytes += $3 } END { exit bytes == 0 || bytes > 128 * 1024 * 1024 }' ||
    fail "what is one memory is not what the file system has"
  finishes full
fi

stopNode a
stopNode b
waitUntil noRelays
