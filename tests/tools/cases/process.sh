# A program is saved with its process to a directory and to the store, while it goes on and when it ends: each time it is restored on the
# other node with its memory, and `ps` and `snapshots` report it.
export VGPU_STORE=$dir/store
startNode a
startNode b
needCriu a
startContents a held 8
pid=$(field a held pid)
memoryIsRight held

# Ended, and restored in the background.
succeeds ctl a suspend held --process --to "$dir/first"
waitUntil ended "$pid"
waitUntil listsNot a held  # it sees the end of the process itself
code=0
wait "${runner[held]}" || code=$?
[ "$code" = 137 ] || fail "vgpuctl run returned $code, not that its program was killed"
waitUntil isEmpty "$dir/a/sessions"
ctl a inspect "$dir/first" | finds "^process    $pid (contents) with [0-9]* threads" ||
  fail "the snapshot does not say that it has a process"
ctl a inspect "$dir/first" | finds "^mapped .*/contents$" || fail "the snapshot does not say what the process has mapped"
succeeds ctl b resume "$dir/first"
[ "$(field b held pid)" = "$pid" ] || fail "the program has another process id"
hasState b held running || fail "the session is $(field b held state)"
memoryIsRight held
tell held change changed

# It goes on, and the snapshot cannot be resumed as long as it does.
succeeds ctl b snapshot held --process --name live
hasState b held running || fail "the program does not go on after a snapshot: $(field b held state)"
memoryIsRight held
refused "is on this node already (running)" ctl b resume live
refused "process id $pid of the saved process is in use: process $pid (contents) has it" ctl a resume live
stillWorks b held

# From the store, while its parent waits for it.
succeeds ctl b suspend held --process --name stored
succeeds ctl b snapshots verify stored
# Damage in the session's part is found before a process is restored.
printf x >>"$VGPU_STORE/snapshots/stored/objects"
refused "file objects: length" ctl a resume stored
ended "$pid" || fail "a process was restored from a damaged snapshot"
truncate -s -1 "$VGPU_STORE/snapshots/stored/objects"
refused "which an archive cannot contain" ctl b snapshots export stored "$dir/archive"
ctl a resume --wait stored >"$dir/resume.log" 2>&1 &
runner[held]=$!
waitUntil hasState a held running
memoryIsRight held
endContents held
succeeds ctl a snapshots rm stored
succeeds ctl a snapshots rm live
succeeds ctl a snapshots gc
isEmpty "$VGPU_STORE/snapshots" || fail "the store keeps what was removed"
stopNode a
stopNode b
