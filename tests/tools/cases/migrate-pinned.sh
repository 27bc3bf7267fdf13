# A program that has had pinned memory, and has none now, leaves its host; what it pins there has two copies, and works. One that has
# some is refused before anything is sent.
program=$tree/tests/programs/pinned-later
[ -x "$program" ] || skip "no program pinned-later"
export VGPU_FAULT_LOG=$dir/faults
startNode a
startNode b --listen tcp:127.0.0.1:0
# memoryIsSent: since the last call, some of a program's.
memoryIsSent() {
  grep -qs "^migrate.prepared " "$dir/faults"
  local code=$?
  rm -f "$dir/faults"
  return $code
}

# runPaused NAME PROGRAM: with node a, until its pause point.
runPaused() {
  LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} VGPU_PAUSE_FILE=$dir/$1 "$tree/bin/vgpuctl" --node "unix:$dir/a/vgpud.sock" run --name "$1" -- \
    "$2" >"$dir/$1.log" 2>&1 &
  runner[$1]=$!
  waitUntil test -e "$dir/$1.reached"
}
goesOn() {
  touch "$dir/$1.go"
  wait "${runner[$1]}" || fail "$1 returned $?"
}

runPaused later "$program"
succeeds ctl a migrate later --to "$(addressOf b)"
waitUntil hasState b later running
memoryIsSent || fail "no memory was sent"
goesOn later

runPaused having "$tree/tests/programs/memory"
refused "the program cannot leave its host: it has .* pieces of pinned memory" ctl a migrate having --to "$(addressOf b)"
! memoryIsSent || fail "memory of a program that cannot leave was sent"
hasState a having running || fail "the program that cannot leave is $(field a having state)"
goesOn having
waitUntil noRelays
