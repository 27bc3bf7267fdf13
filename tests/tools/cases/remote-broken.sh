# A program whose connection to its node breaks continues where it was, unless the break lasts too long. VGPU_TRANSPORT: tcp or tls.
# greetLate TOKEN: sends that session's first greeting again, as an attempt that arrives late, and waits until the node has dropped it.
greetLate() {
  timeout "$limit" python3 - "$transport" "${address##*:}" "$dir/config/vgpu/keys/identity.pem" "$1" "$(greetingVersion)" >"$dir/late.log" 2>&1 <<'PY'
import socket, ssl, struct, sys
transport, port, keys, token, version = sys.argv[1:]
connection = socket.create_connection(("127.0.0.1", int(port)))
if transport == "tls":
    context = ssl.create_default_context(cafile=keys)
    context.load_cert_chain(keys)
    connection = context.wrap_socket(connection, server_hostname="127.0.0.1")
connection.sendall(b"VGPULINK" + struct.pack("<II", int(version), 2) + bytes.fromhex(token) + struct.pack("<QQ", 0, 1) + b"\0" * 16)
assert connection.recv(1) == b""
PY
}
hasPort() { grep -qs '^[0-9]' "$dir/broken.port"; }

transport=${VGPU_TRANSPORT:-tcp}
[ "$transport" != tls ] || succeeds "$tree/bin/vgpuctl" keys init
export VGPU_LINK_LIMIT=20
startNode a --listen "$transport:127.0.0.1:0"
address=$(addressOf a)
python3 "$(dirname "${BASH_SOURCE[0]}")/../broken-link" "${address##*:}" >"$dir/broken.port" 2>"$dir/broken.log" &
link=$!
waitUntil hasPort

# Cut repeatedly while it works.
startFar "$transport:127.0.0.1:$(cat "$dir/broken.port")" far 24
for round in 1 2 3 4; do
  kill -USR1 "$link"
  memoryIsRight far
  before=$(grep -c '^changed' "$dir/far.log")
  echo change >&"${commands[far]}"
  sleep "0.0$round"
  kill -USR1 "$link"
  waitUntil saysMore far changed "$before"
  memoryIsRight far
done

# An attempt that it has since given up arrives late.
greetLate "$(basename "$dir"/a/relays/*[0-9a-f])" || fail "an outdated connection was not dropped"
memoryIsRight far

# Cut for a while: it waits.
before=$(grep -c '^wrong ' "$dir/far.log")
kill -USR2 "$link"
echo verify >&"${commands[far]}"
sleep 2
hasState a far running || fail "the session is $(field a far state) while its connection is cut"
kill -USR2 "$link"
waitUntil saysMore far "wrong " "$before"
[ "$(grep '^wrong ' "$dir/far.log" | tail -n 1)" = "wrong 0" ] || fail "the memory has changed"

# Cut while its keys are being replaced.
if [ "$transport" = tls ]; then
  kill -USR2 "$link"
  mv "$dir/config/vgpu/keys/identity.pem" "$dir/identity.pem"
  sleep 1
  hasState a far running || fail "the session is $(field a far state) while there are no keys"
  mv "$dir/identity.pem" "$dir/config/vgpu/keys/identity.pem"
  kill -USR2 "$link"
  memoryIsRight far
fi

# Cut while it is suspended and resumed.
kill -USR1 "$link"
succeeds ctl a suspend far --to "$dir/snapshot"
kill -USR1 "$link"
succeeds ctl a resume "$dir/snapshot"
memoryIsRight far
endContents far
waitUntil noRelays

# Cut for too long: the program gets an error, and the node frees its GPU.
export VGPU_LINK_LIMIT=1
stopNode a
startNode a --listen "$transport:127.0.0.1:0"
address=$(addressOf a)
kill -KILL "$link"
rm "$dir/broken.port"
python3 "$(dirname "${BASH_SOURCE[0]}")/../broken-link" "${address##*:}" >"$dir/broken.port" 2>"$dir/broken.log" &
link=$!
waitUntil hasPort
startFar "$transport:127.0.0.1:$(cat "$dir/broken.port")" lost 24
kill -USR2 "$link"
waitUntil says lost "was cut"
waitUntil listsNot a lost
kill -KILL "${runner[lost]}"
waitUntil noRelays
kill -KILL "$link"
stopNode a
