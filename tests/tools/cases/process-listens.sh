# A program that listens on a TCP socket is saved, ended and resumed: a client connects before and afterwards, to the same port, and is
# served by the same process. A program with established connections, and a port that is taken, are refused by name before the program is
# affected.
startNode a
startNode b
needCriu a
# listener FILE: writes its port to FILE and serves one client at a time, until the client closes its connection.
cat >"$dir/listener" <<'P'
import os, random, socket, sys
# Not an ephemeral port (ip_local_port_range): another process could get that while this one is saved.
ports = [int(sys.argv[2])] if len(sys.argv) > 2 else random.sample(range(10000, 30000), 1000)
for port in ports:
    try:
        listener = socket.create_server(("127.0.0.1", port))
        break
    except OSError:
        if port == ports[-1]: raise
with open(sys.argv[1], "w") as file: print(listener.getsockname()[1], file=file)
served = 0
while True:
    client = listener.accept()[0]
    served += 1
    client.sendall(b"%d %d\n" % (os.getpid(), served))
    client.recv(1)
    client.close()
P
printf '#!/bin/bash\npython3 "$4" "$5" &\n"$1" --serve random 1 <"$2" >>"$3"\nkill $!\nexit 0\n' >"$dir/script"
startScript a held "$dir/script" "$dir/listener" "$dir/port"
waitUntil test -s "$dir/port"
read -r port <"$dir/port"
# ask: connects, and reads the program's message to a client; hangUp: closes the connection, and waits until the program has closed it too.
ask() {
  exec {connection}<>"/dev/tcp/127.0.0.1/$port" || fail "nobody listens on port $port"
  read -r -t "$limit" server served <&"$connection"
}
hangUp() {
  exec {connection}>&-
  waitUntil hasNoClient
}
hasNoClient() { [ "$(ls -l "/proc/$pid/fd" | grep -c socket:)" = 1 ]; }
save() { ctl a suspend held --process --to "$dir/saved"; }
untouched() {
  isGone "$dir/saved" || fail "something of a snapshot is left"
  hasState a held running || fail "the session is $(field a held state)"
  memoryIsRight held
}
readsPassCred() { python3 -c 'import socket; socket.socket().getsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED)' 2>/dev/null; }

if ! readsPassCred; then
  printf '#!/bin/bash\n[ "$1" != --version ] || echo "Version: 4.1.1"\n' >"$dir/criu"
  chmod +x "$dir/criu"
  VGPU_CRIU=$dir/criu refused 'its descriptor [0-9]* is a TCP socket, which CRIU before 4.2.1 cannot save' save
  untouched
fi
ask
pid=$server
[ "$served" = 1 ] || fail "the first client is number $served"
refused "process $pid (python3.*): its descriptor [0-9]* is a TCP connection" save
untouched
exec {caller}<>"/dev/tcp/127.0.0.1/$port"
refused "its descriptor [0-9]* listens, and has TCP connections that were not accepted yet" save
untouched
exec {connection}>&-
read -r -t "$limit" server served <&"$caller"
[ "$served" = 2 ] || fail "the second client is number $served"
exec {caller}>&-
waitUntil hasNoClient

save >"$dir/saved.log" 2>&1 || {
  says saved 'CRIU before 4.2.1' && skip "$(cat "$dir/saved.log")"
  fail "it was not saved"
}
waitUntil ended "$pid"
python3 "$dir/listener" "$dir/taken" "$port" &
other=$!
waitUntil test -s "$dir/taken"
refused "cannot restore process .*Address already in use" ctl b resume "$dir/saved"
waitUntil listsNot b held
kill "$other"
waitUntil ended "$other"
succeeds ctl b resume "$dir/saved"
ask
hangUp
[ "$server $served" = "$pid 3" ] || fail "process $server served number $served, not process $pid number 3"
memoryIsRight held
ctl b suspend held --process --to "$dir/again" >"$dir/saved.log" 2>&1 || fail "a restored listener is not saved"
ctl a resume --wait "$dir/again" >"$dir/resume.log" 2>&1 &
runner[held]=$!
waitUntil hasState a held running
ask
hangUp
[ "$server $served" = "$pid 4" ] || fail "process $server served number $served, not process $pid number 4"
endContents held
stopNode a
stopNode b
