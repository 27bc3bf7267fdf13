# A daemon ends cleanly: running programs get an error, suspended ones wait and can be resumed elsewhere.
hasWorker() { [ -n "$(processesOfRun sleep)" ]; }
hasNoWorker() { ! hasWorker; }

startNode a
startNode b
startDouble a running
startDouble a suspended
succeeds ctl a suspend suspended --to "$dir/snapshot"
stopNode a
isGone "$dir/a/vgpud.sock" && isGone "$dir/a/session.sock" || fail "sockets are left"
waitUntil ended "${double[running]}"
says running '^lost: its vgpud was shut down' || fail "the running program was not told"
[ "$(processesOfRun vgpu-worker | wc -l)" = 1 ] || fail "workers are left: $(processesOfRun vgpu-worker)"

alive "${double[suspended]}" || fail "the suspended program was ended"
state=$(sed -n 's/^opened [^ ]* //p' "$dir/suspended.log")
[ -d "$state" ] || fail "the suspended program's state was removed"
succeeds ctl b resume "$dir/snapshot"
stillWorks b suspended

# The new owner removes the state that the old one made.
kill -TERM "${double[suspended]}"
waitUntil isGone "$state"
stopNode b
[ -z "$(processesOfRun vgpu-worker)" ] || fail "workers are left"

# Programs that end together with the daemon, so that it writes to closed connections.
startNode e
for name in one two three; do startDouble e "$name"; done
stopProcess "${daemon[e]}"
kill -TERM "${daemon[e]}"
for name in one two three; do kill -KILL "${double[$name]}" && waitUntil ended "${double[$name]}"; done
kill -CONT "${daemon[e]}"
endsCleanly e

# A driver that does not start: a worker that never replies does not delay the daemon's end.
slow=$dir/slow
mkdir -p "$slow/bin" "$slow/lib/vgpu"
cp "$tree/bin/vgpud" "$slow/bin/"
cp "$tree/lib/vgpu/libvgpu-emulator.so" "$slow/lib/vgpu/"
printf '#!/bin/sh\nexec sleep 1000\n' >"$slow/lib/vgpu/vgpu-worker"
chmod +x "$slow/lib/vgpu/vgpu-worker"
for signal in TERM INT; do
  "$slow/bin/vgpud" --run-dir "$dir/d" --device emulated >"$dir/d.log" 2>&1 &
  daemon[d]=$!
  waitUntil hasWorker
  kill -"$signal" "${daemon[d]}"
  endsCleanly d
  waitUntil hasNoWorker
  isGone "$dir/d/vgpud.sock" || fail "its socket is left"
done

# A signal before it is ready, and SIGINT, work too.
startNode c
kill -INT "${daemon[c]}"
endsCleanly c
