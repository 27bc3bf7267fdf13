# If a worker gets no more memory, the suspend or resume that needs it fails, and nothing else: the program goes on, or waits for another
# worker, and the daemon and its other sessions are not affected.
program=$tree/tests/programs/sleeper
[ -x "$program" ] || skip "no $program"
[ -z "${VGPU_PROGRAM_PRELOAD:-}" ] || skip "a sanitizer ends a process that gets no memory"
command -v prlimit >/dev/null || skip "no prlimit"
# starve PID: limits the process to its present memory and one mebibyte more.
starve() {
  local kilobytes
  kilobytes=$(awk '$1 == "VmData:" {print $2}' "/proc/$1/status")
  prlimit --pid "$1" --data=$(((kilobytes + 1024) * 1024)):unlimited
}
feed() { prlimit --pid "$1" --data=unlimited:unlimited; }

startNode b --warm 1
isWarm() { [[ $(ctl b ps --workers --json) == *'"session": null'* ]]; }
waitUntil isWarm
starve "$(processesOfRun vgpu-worker)"

startNode a
startDouble a other
ctl a run -- "$program" 1000 >"$dir/program.log" 2>&1 &
runner=$!
waitUntil says program 'sleeper: running'
worker=$(field a sleeper workerPid)
starve "$worker"
refused 'cannot get .* MiB of host memory' ctl a suspend sleeper --to "$dir/first"
hasState a sleeper running || fail "the program is $(field a sleeper state) after a suspend that failed"
[ ! -e "$dir/first/manifest.json" ] || fail "a suspend that failed has left a snapshot"
feed "$worker"
succeeds ctl a suspend sleeper --to "$dir/second"

refused 'cannot get .* MiB of host memory' ctl b resume "$dir/second"
alive "$runner" || fail "the program did not wait for another worker"
hasState a other running || fail "another session is $(field a other state)"
succeeds ctl b ps
succeeds ctl a resume "$dir/second"
waitUntil hasState a sleeper running
kill "$runner"
wait "$runner"
true
