# Programs that share host memory: a snapshot of one of them, and a migration within the host, do not affect the others; the program cannot
# migrate to another host, and cannot be copied.
program=$tree/tests/programs/shared-host-memory
[ -x "$program" ] || skip "no $program"
export VGPU_STORE=$dir/store
startNode a
startNode b --listen tcp:127.0.0.1:0

runShared() {
  runPaused a shared "$program"
  pid=$(cat "$dir/shared.reached")
}
ends() {
  finishes shared
  says shared 'shared-host-memory: ok' || fail "the program was wrong"
}

runShared
succeeds ctl a snapshot "pid:$pid" --to "$dir/snapshot"
refused "memory that other processes have opened, which it shares with the GPU's host" ctl a migrate "pid:$pid" --to "$(addressOf b)"
succeeds ctl a migrate "pid:$pid" --to "unix:$dir/b/vgpud.sock"
waitUntil hasState b "$pid" running
ends

needCriu a
runShared
succeeds ctl a snapshot "pid:$pid" --process --name shared
refused "shares host memory with other processes, which a copy would share too" ctl a clone shared
ends
