# In a pid namespace whose processes all belong to a session (setsid) with a leader outside, as in a container that a shell has entered:
# CRIU cannot save such processes, so `vgpuctl run` starts a new session for the program, and a program that was started otherwise is
# refused before it is affected.
if [ "$(cut -d ' ' -f 6 "/proc/$BASHPID/stat")" != 0 ]; then
  unshare --pid --fork --mount-proc true 2>"$dir/unshare.log" || skip "$(cat "$dir/unshare.log")"
  unshare --pid --fork --mount-proc "$0" "$tree" "$doubleProgram" "$(dirname "$0")/cases/process-namespace.sh"
  exit
fi
startNode a
startNode b
needCriu a
startContents a held 1
pid=$(field a held pid)
succeeds ctl a suspend held --process --to "$dir/held"
waitUntil ended "$pid"
succeeds ctl b resume "$dir/held"
[ "$(field b held pid)" = "$pid" ] || fail "the program has another process id"
memoryIsRight held
endProgram held

mkfifo "$dir/foreign.in"
env LD_PRELOAD="${VGPU_PROGRAM_PRELOAD:-}:$tree/lib/vgpu/libcudart.so.13:$tree/lib/vgpu/libcuda.so.1" VGPU_NODE="unix:$dir/a/vgpud.sock" \
  VGPU_SESSION_NAME=foreign "$tree/tests/programs/contents" --serve random 1 <"$dir/foreign.in" >"$dir/foreign.log" 2>&1 &
runner[foreign]=$!
exec {file}>"$dir/foreign.in"
commands[foreign]=$file
waitUntil says foreign ready
refused "the leader of its session (setsid) is outside of its pid namespace: start it with .vgpuctl run., or setsid(1). It goes on" \
  ctl a suspend foreign --process --to "$dir/foreign"
isGone "$dir/foreign" || fail "something of a snapshot is left"
memoryIsRight foreign
endContents foreign
stopNode a
stopNode b
