# A session whose target fails while it takes over, and a session whose target has taken over but cannot report it.
export VGPU_FAULT_LOG=$dir/faults
startNode a

# The target's worker ends: the session stays, and memory that it exports to other processes, which have not opened it yet, still exists.
program=$tree/tests/programs/ipc-memory
if [ -x "$program" ]; then
  VGPU_FAULT_POINT=resume.bytes-restored:kill startNode b
  VGPU_PAUSE_FILE=$dir/pause ctl a run -- "$program" given >"$dir/gives.log" 2>&1 &
  runner=$!
  waitUntil test -e "$dir/pause.reached"
  refused "was killed by signal 9" ctl a migrate "pid:$(cat "$dir/pause.reached")" --to "$dir/b"
  : >"$dir/pause.go"
  wait "$runner" || fail "the program returned $?"
  says gives 'ipc-memory: ok' || fail "the program was wrong"
  stopNode b
  rm "$dir/faults"
fi

# The connection between the nodes ends when the target's worker has claimed the session: link.py forwards connections to its folder.
cat >"$dir/link.py" <<'PY'
import os, socket, sys, threading
os.mkdir(sys.argv[2])
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[2] + "/vgpud.sock")
listener.listen()
print("listens", flush=True)
def passOn(one, other):
    while got := one.recv(1 << 16):
        other.sendall(got)
while True:
    near, far = listener.accept()[0], socket.socket(socket.AF_UNIX)
    far.connect(sys.argv[1] + "/vgpud.sock")
    for ends in (near, far), (far, near):
        threading.Thread(target=passOn, args=ends, daemon=True).start()
PY
VGPU_FAULT_POINT=resume.proceeded:stop startNode c
python3 "$dir/link.py" "$dir/c" "$dir/link" >"$dir/link.log" 2>&1 &
link=$!
waitUntil says link listens
startContents a one 4
ctl a migrate one --to "$dir/link" >"$dir/migrate.log" 2>&1 &
migrating=$!
waitUntil grep -qs '^resume.proceeded .* stop$' "$dir/faults"
kill -KILL "$link"
waitUntil ended "$link"
letGo "$(sed -n 's/^resume.proceeded [^ ]* \([0-9]*\) stop$/\1/p' "$dir/faults")"
wait "$migrating" || fail "a migration that has succeeded is reported as failed: $(cat "$dir/migrate.log")"
says migrate "one runs on" || fail "it does not say that it has moved: $(cat "$dir/migrate.log")"
waitUntil hasState c one running
waitUntil listsNot a one
memoryIsRight one
endContents one
[ -z "$(workersOn a)" ] || fail "the source has kept the worker of a session that has moved"
