# Garbage, incomplete messages and silence on a socket end that connection and nothing else.
startNode a
startDouble a one
python3 - "$dir/a" <<'P' || fail "the daemon did not close what it should"
import os, random, socket, sys
random.seed(7)
def connect(name):
    s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(os.path.join(sys.argv[1], name)); return s
def closes(s):
    try:
        while s.recv(65536): pass
    except ConnectionResetError: pass
for name in ("vgpud.sock", "session.sock"):
    for size in (8, 64, 4096, 100000):
        for _ in range(8):
            s = connect(name)
            try: s.sendall(b"\xff" * 8 + random.randbytes(size))
            except (BrokenPipeError, ConnectionResetError): pass
            closes(s)
    for half in (b"\0", b"\0\0\0\0", b"\0\0\0\0\x02\0\0\0" + b"\0" * 8, b"\0\0\0\0\xff\xff\xff\x7f"):
        s = connect(name); s.sendall(half); s.close()
# A well-framed message that vgpu does not know.
s = connect("session.sock"); s.sendall(b"\0\0\0\0\x01\0\0\0" + b"\0" * 8); closes(s)
# A message that announces descriptors but brings none, and descriptors that were not requested.
s = connect("session.sock")
socket.send_fds(s, [b"\0\0\0\0\x01\0\0\0" + b"\0" * 8], [0, 1, 2, 0, 1, 2, 0, 1, 2]); closes(s)
P
startDouble a two
stillWorks a one
stillWorks a two
