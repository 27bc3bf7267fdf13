# A program whose GPU is on another host is listed, suspended and resumed like any; strangers and peers of another version are refused.
startNode a --listen tcp:127.0.0.1:0
address=$(addressOf a) port=${address##*:}
startNode b

# Invalid addresses, and an address without a node.
refused "is not the address of a node: give tls:HOST:PORT, tcp:HOST:PORT or vsock:CID:PORT" "$tree/bin/vgpuctl" --node tcp:127.0.0.1 ps
refused "nothing answers at tcp:127.0.0.1:1: " "$tree/bin/vgpuctl" --node tcp:127.0.0.1:1 ps
refused "can be reached from other hosts" "$tree/bin/vgpud" --run-dir "$dir/c" --device emulated --listen tcp:0.0.0.0:0
refused "takes tls:HOST:PORT, tcp:HOST:PORT or vsock:CID:PORT" "$tree/bin/vgpud" --run-dir "$dir/c" --device emulated --listen "unix:$dir/x"

# A stranger, and a peer of another version: both get at most a greeting.
python3 - "$port" "$(greetingVersion)" <<'PY' || fail "a stranger on the port was not treated as one"
import socket, struct, sys
version = int(sys.argv[2])
def say(data):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s:
        s.settimeout(20)
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        answer = b""
        while True:
            try: got = s.recv(4096)
            except ConnectionResetError: return answer
            if not got: return answer
            answer += got
assert say(b"GET / HTTP/1.1\r\n\r\n" + b"x" * 100) == b""
assert say(b"\0" * 10) == b""
answer = say(b"VGPULINK" + struct.pack("<II", 99, 2) + b"\0" * 48)
assert answer[:8] == b"VGPULINK" and struct.unpack("<II", answer[8:16]) == (version, 1) and len(answer) == 32, answer
answer = say(b"VGPULINK" + struct.pack("<II", version, 9) + b"\0" * 48)
assert b"asks for an unknown kind of connection" in answer, answer
# A further connection for a session that does not exist, and a flood of them.
for _ in range(40):
    answer = say(b"VGPULINK" + struct.pack("<II", version, 5) + b"\x11" * 16 + b"\0" * 32 + b"\xff" * 5000)
    assert answer == b"" or b"the session now has another connection, or none" in answer, answer
assert answer != b"", "it was not told"
PY
waitUntil noRelays

# A program and its session.
startFar "$address" far 24
farMoves "$address" far
endContents far
waitUntil noRelays
waitUntil listsNot a far
stopNode a
stopNode b
