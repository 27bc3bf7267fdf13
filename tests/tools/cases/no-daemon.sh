# Without a daemon, commands fail at once with a message that names the socket.
refused "no vgpud answers: there is no socket $dir/nobody/vgpud.sock" ctl nobody ps
refused "no vgpud answers" ctl nobody suspend x --to "$dir/x"
refused "no vgpud answers" ctl nobody resume "$dir/x"
refused "no vgpud answers" ctl nobody run -- /bin/true
refused "give tls:HOST:PORT" "$tree/bin/vgpuctl" --node tcp:host ps

# A killed daemon leaves its socket behind.
startNode a
killNode a
[ -S "$dir/a/vgpud.sock" ] || fail "no stale socket to test with"
refused "nobody listens on" ctl a ps

# A program that is started without vgpuctl gets an error too.
VGPU_NODE=$dir/nobody refused "there is no socket" "$doubleProgram"

# No daemon runs, and none can be started.
TMPDIR=$dir/nowhere refused "no vgpud runs, and a private one cannot be started" "$tree/bin/vgpuctl" run -- /bin/true
