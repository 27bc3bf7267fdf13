# A suspend that is interrupted when its snapshot is complete: if the program goes on, its outdated snapshot is removed; if its daemon is
# gone, the program waits for the snapshot to be resumed.
export VGPU_FAULT_LOG=$dir/faults
wasHit() { grep -qs "^$1 .* ${2:-[a-z]*}$" "$dir/faults"; }

# The caller is killed: the worker has renamed the manifest into place, but has not reported it.
VGPU_FAULT_POINT=suspend.manifest-named:stop startNode a
startDouble a one
worker=$(field a one workerPid)
ctl a suspend one --to "$dir/x" >"$dir/suspend.log" 2>&1 &
suspend=$!
waitUntil wasHit suspend.manifest-named stop
[ -e "$dir/x/manifest.json" ] || fail "no manifest"
killCommands a suspend
waitUntil hasState a one running
waitUntil says one 'gate open'
letGo "$worker"
waitUntil isGone "$dir/x"
hasState a one running || fail "the program does not run"

# The daemon is killed, and the snapshot is good.
startDouble a two
rm "$dir/faults"
ctl a suspend two --to "$dir/y" >"$dir/suspend.log" 2>&1 &
suspend=$!
waitUntil wasHit suspend.manifest-named stop
kill -KILL "${daemon[a]}"
wait "$suspend" && fail "a suspend without its daemon succeeded"
waitUntil says two 'ended while it was suspending this program, which now waits 300 s'
startNode b
succeeds ctl b resume "$dir/y"
stillWorks b two

# It is never resumed.
VGPU_FAULT_POINT=suspend.quiesced:stop startNode c
VGPU_REATTACH_LIMIT=1 startDouble c three
rm "$dir/faults"
ctl c suspend three --to "$dir/z" >"$dir/suspend.log" 2>&1 &
waitUntil wasHit suspend.quiesced stop
kill -KILL "${daemon[c]}"
waitUntil ended "${double[three]}"
says three '^lost: its vgpud ended while this program was being suspended' || fail "the program was not told"
