# A worker that dies ends only its own session, and the program gets an error.
startNode a
startDouble a one
DOUBLE_STAYS=1 startDouble a two
kill -KILL "$(field a one workerPid)"
waitUntil ended "${double[one]}"
says one '^lost: its vgpu-worker was killed by signal 9' || fail "the program was not told why"
waitUntil listsNot a one

worker=$(field a two workerPid)
kill -KILL "$worker"
waitUntil hasState a two lost
isGone "/proc/$worker" || fail "the worker was not reaped"
refused "is not running: its worker was lost" ctl a suspend two --to "$dir/x"
isGone "$dir/x" || fail "a refused suspend made a directory"

# During a suspend: the worker is stopped, so the suspend waits for it.
startDouble a three
suspendAtStandstill a three y
kill -KILL "$worker"
wait "$suspend" && fail "a suspend without a worker succeeded"
says suspend 'was killed by signal 9' || fail "the caller was not told why"
waitUntil isGone "$dir/y"
waitUntil ended "${double[three]}"

# The worker that waits for the next session is replaced.
for worker in $(processesOfRun vgpu-worker); do kill -KILL "$worker"; done
startDouble a four
stillWorks a four
