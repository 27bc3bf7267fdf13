# A program that shares pinned memory with its GPU's host, or has done so, migrates to another host: from then on the memory has two copies,
# and still works. A program with registered memory or physical memory of the host is refused before anything is sent.
program=$tree/tests/programs/pinned-later
[ -x "$program" ] || skip "no program pinned-later"
export VGPU_FAULT_LOG=$dir/faults
startNode a
startNode b --listen tcp:127.0.0.1:0
# memoryIsSent: whether any memory of a program was sent since the last call.
memoryIsSent() {
  grep -qs "^migrate.prepared " "$dir/faults"
  local code=$?
  rm -f "$dir/faults"
  return $code
}

# leaves NAME PROGRAM: the program migrates at its pause point, and ends at the target.
leaves() {
  runPaused a "$1" "$2"
  succeeds ctl a migrate "$1" --to "$(addressOf b)"
  waitUntil hasState b "$1" running
  memoryIsSent || fail "no memory of $1 was sent"
  finishes "$1"
}
leaves later "$program"
leaves having "$tree/tests/programs/memory"

# stays NAME PROGRAM WHY: at its pause point the program has memory that cannot leave its host; it is refused and goes on there.
stays() {
  runPaused a "$1" "$2"
  refused "the program cannot move to another host: it has .* $3" ctl a migrate "$1" --to "$(addressOf b)"
  ! memoryIsSent || fail "memory of a program that cannot leave was sent"
  hasState a "$1" running || fail "the program that cannot leave is $(field a "$1" state)"
  finishes "$1"
}
stays registered "$tree/tests/programs/host-register" "registered ranges of its own memory"
stays physical "$tree/tests/programs/host-physical" "physical allocations of host memory"

# A program whose migration fails after it has given up sharing stays, and can migrate later.
runPaused a staying "$tree/tests/programs/memory"
VGPU_FAULT_POINT=migrate.arriving:kill startNode doomed --listen tcp:127.0.0.1:0
ctl a migrate staying --to "$(addressOf doomed)" >"$dir/doomed-migrate.log" 2>&1 && fail "a migration to a node that was killed succeeded"
waitUntil hasState a staying running
rm -f "$dir/faults"
succeeds ctl a suspend staying --to "$dir/snapshot"
succeeds ctl a resume "$dir/snapshot"
succeeds ctl a migrate staying --to "$(addressOf b)"
waitUntil hasState b staying running
finishes staying
waitUntil noRelays
