# A program that asks for a new worker gets one, even while a snapshot of it is being written; when it runs again, no snapshot that could
# not be resumed is left.
export VGPU_STORE=$dir/store VGPU_FAULT_LOG=$dir/faults
stoppedAt() { sed -n "s/^$1 [^ ]* \([0-9]*\) stop\$/\1/p" "$dir/faults" 2>/dev/null; }
hasStopped() { [ -n "$(stoppedAt "$1")" ]; }
hasRenewal() { ! isEmpty "$dir/$1/renewals"; }

# The snapshot's worker is stopped after it has synced its packs, when the program already runs again.
VGPU_FAULT_POINT=suspend.packs-synced:stop startNode a
startDouble a one
worker=$(field a one workerPid)
ctl a snapshot one --name live >"$dir/snapshot.log" 2>&1 &
snapshot=$!
waitUntil hasStopped suspend.packs-synced
waitUntil says one 'gate open'
kill -USR1 "${double[one]}"
waitUntil hasRenewal a
letGo "$worker"
wait "$snapshot" || fail "there is no snapshot: $(cat "$dir/snapshot.log")"
waitUntil says one 'renewed'
says one '^renewed' || fail "the program got no new worker"
[ "$(field a one workerPid)" != "$worker" ] || fail "it has the worker that it had"
waitUntil isEmpty "$dir/a/renewals"
stillWorks a one

# The new worker ends before it has the session: the session is suspended, and can be resumed.
rm "$dir/faults"
VGPU_FAULT_POINT=resume.memory-attached:stop startNode b
startDouble b two
kill -USR1 "${double[two]}"
waitUntil hasStopped resume.memory-attached
kill -KILL "$(stoppedAt resume.memory-attached)"
waitUntil says two '^not renewed: '
hasState b two suspended || fail "the session is $(field b two state)"
hasRenewal b || fail "its snapshot is gone"
rm "$dir/faults"
ctl b resume "$(field b two snapshot)" >"$dir/resume.log" 2>&1 &
resume=$!
waitUntil hasStopped resume.memory-attached
letGo "$(stoppedAt resume.memory-attached)"
wait "$resume" || fail "it was not resumed: $(cat "$dir/resume.log")"
hasState b two running || fail "the session is $(field b two state)"
waitUntil isEmpty "$dir/b/renewals"
