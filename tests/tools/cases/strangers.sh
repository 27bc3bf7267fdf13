# Strangers at the port of a node: silence, garbage, handshakes that are truncated, altered or slow, and more connections than it accepts.
# They get no further than the handshake; memory and processes stay bounded; clients with keys are served meanwhile and afterwards.
succeeds "$tree/bin/vgpuctl" keys init
startNode a --listen tls:127.0.0.1:0
address=$(addressOf a)
startDouble a one
succeeds at "$address" ps

python3 - "${address##*:}" <<'PY' || fail "a stranger got more than a handshake"
import random, socket, ssl, sys
port = int(sys.argv[1])
random.seed(11)

def hello():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    out = ssl.MemoryBIO()
    try: context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost").do_handshake()
    except ssl.SSLWantReadError: pass
    return out.read()

def heard(*pieces):
    answer = b""
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.settimeout(60)
        try:
            for piece in pieces: s.sendall(piece)
            s.shutdown(socket.SHUT_WR)
            while got := s.recv(65536): answer += got
        except (ConnectionError, OSError): pass
    assert len(answer) < 8192, f"{len(answer)} bytes of answer"
    assert b"VGPULINK" not in answer, answer
    return answer

whole = hello()
assert heard(whole)[:1] == b"\x16", "a handshake is not answered"
for _ in range(24): heard(random.randbytes(random.choice((1, 7, 64, 5000, 200000))))
for _ in range(24): heard(whole[:random.randrange(len(whole))])
for _ in range(24):
    changed = bytearray(whole)
    for _ in range(random.randrange(1, 6)): changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    heard(bytes(changed), random.randbytes(random.randrange(2000)))
# A handshake that announces more bytes than any client sends.
heard(b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + b"\0" * 16000)
heard(*[b"\x16\x03\x01\x40\x00" + b"\1\xff\xff\xff" + b"\0" * 16380] * 20)
PY

# More connections than a node greets at a time, which send nothing or one byte at a time, and are made again as soon as they end.
python3 - "${address##*:}" "$dir/held" <<'PY' >"$dir/holder.log" 2>&1 &
import os, selectors, socket, sys, time
port, most = int(sys.argv[1]), 160
hello, sent = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500, {}
selector, count = selectors.DefaultSelector(), 0
while True:
    while count < most:
        s = socket.socket(); s.setblocking(False)
        s.connect_ex(("127.0.0.1", port))
        selector.register(s, selectors.EVENT_READ)
        sent[s] = 0
        count += 1
    open(sys.argv[2], "a").close()
    for key, _ in selector.select(0.05):
        try: over = not key.fileobj.recv(4096)
        except BlockingIOError: over = False
        except OSError: over = True
        if over:
            selector.unregister(key.fileobj); key.fileobj.close(); del sent[key.fileobj]; count -= 1
    for s in list(sent)[::2]:
        try: sent[s] += s.send(hello[sent[s]:sent[s] + 1])
        except OSError: pass
    time.sleep(0.02)
PY
holder=$!
waitUntil test -e "$dir/held"
sleep 2
# Each accepted connection has a relay process, and briefly the parent that it leaves.
[ "$(processesOfRun vgpu-relay | wc -l)" -le 80 ] || fail "there are $(processesOfRun vgpu-relay | wc -l) relays"
reached() { at "$address" ps >"$dir/reached.log" 2>&1; }
waitUntil reached
grep -q one "$dir/reached.log" || fail "ps does not list the session"
stillWorks a one
[ "$(wc -l <"$dir/a.log")" -le 200 ] || fail "the log has $(wc -l <"$dir/a.log") lines"
kilobytes=$(awk '/^VmRSS/ { print $2 }' "/proc/${daemon[a]}/status")
[ "$kilobytes" -le 200000 ] || fail "vgpud has grown to $kilobytes KiB"
kill "$holder"
waitUntil noRelays
succeeds at "$address" ps
stillWorks a one
stopNode a
