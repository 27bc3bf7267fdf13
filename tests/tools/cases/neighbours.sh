# Failures of one program's GPU do not affect other programs: a kernel that faults, and a process that dies while its GPU works.
startNode a

# The other program computes all the while.
ctl a run -- "$tree/tests/programs/sleeper" 4 >"$dir/neighbour.log" 2>&1 &
neighbour=$!
waitUntil lists a sleeper

succeeds ctl a run -- "$tree/tests/programs/fault"
succeeds ctl a run -- "$tree/tests/programs/fault-reset"

LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} "$tree/bin/vgpuctl" --node "unix:$dir/a/vgpud.sock" run -- "$tree/tests/programs/endless" wait >"$dir/endless.log" 2>&1 &
waitUntil says endless 'endless: works'
worker=$(field a endless workerPid)
kill -KILL "$(field a endless pid)"
waitUntil ended "$worker"
waitUntil listsNot a endless

succeeds wait "$neighbour"
