# Many silent connections do not block others, and are closed after a time.
startNode a
startDouble a one
python3 - "$dir/a" "$dir/idle" <<'P' &
import os, socket, sys, time
held = []
for name in ("vgpud.sock", "session.sock"):
    for _ in range(400):
        s = socket.socket(socket.AF_UNIX); s.connect(os.path.join(sys.argv[1], name)); held.append(s)
open(sys.argv[2], "w").close()
for s in held:
    s.settimeout(60)
    while s.recv(4096): pass
P
holder=$!
waitUntil test -e "$dir/idle"
startDouble a two
stillWorks a one
stillWorks a two
wait "$holder" || fail "idle connections were not closed"
