# One run of a program with memory reaches every fault point: it is suspended to a directory, to the store, to memory and in the background,
# saved in a snapshot, and migrated. A fault point kills, stops or continues.
points() { "$tree/bin/vgpud" --list-fault-points; }
[ "$(points | cut -f1 | sort | uniq -d)" = "" ] || fail "a name is there twice"
points | awk -F '\t' 'NF != 3 || $2 !~ /^(program|vgpud|vgpu-worker|vgpuctl)$/ { exit 1 }' || fail "the list is no table"

# countHits NAME ACTION: number of lines in the log.
countHits() { grep -c "^$1 [a-z-]* [0-9]* $2$" "$dir/faults"; }
wasHit() { [ -e "$dir/faults" ] && [ "$(countHits "$1" "$2")" -gt 0 ]; }
export VGPU_FAULT_LOG=$dir/faults

program=$tree/tests/programs/queue-tail
if [ -x "$program" ]; then
  startNode a --pinned 32MiB
  VGPU_PAUSE_FILE=$dir/pause ctl a run -- "$program" >"$dir/program.log" 2>&1 &
  runner=$!
  waitUntil test -e "$dir/pause.reached"
  read -r pid <"$dir/pause.reached"
  succeeds ctl a suspend "$pid" --to "$dir/snapshot"
  succeeds ctl a resume "$dir/snapshot"
  export VGPU_STORE=$dir/store
  succeeds ctl a suspend "$pid" --to memory
  succeeds ctl a resume "$pid"
  succeeds ctl a suspend "$pid" --background --name later
  waitUntil wasHit write.done hit
  succeeds ctl a resume later
  succeeds ctl a suspend "$pid" --name stored
  succeeds ctl a resume stored
  succeeds ctl a snapshot "$pid" --name live
  succeeds ctl a snapshots verify
  succeeds ctl a snapshots export live "$dir/archive"
  succeeds ctl a snapshots import "$dir/archive" imported
  succeeds ctl a snapshots rm --force imported
  succeeds ctl a snapshots gc
  startNode e
  succeeds ctl a migrate "$pid" --to "$dir/e"
  succeeds ctl e migrate "$pid" --to "$dir/a"
  stopNode e
  unable=
  ctl a suspend "$pid" --process --name saved >"$dir/process.log" 2>&1 || unable=$(grep CRIU "$dir/process.log")
  if [ -n "$unable" ]; then
    echo "not tried: $unable"
  else
    wait "$runner"
    says process 'has ended' || fail "the process was not saved: $(cat "$dir/process.log")"
    succeeds ctl a clone saved
    copy=$(field a queue-tail pid)
    kill -KILL "$(awk '/^PPid:/ { print $2 }' "/proc/$copy/status")"
    waitUntil ended "$copy"
    ctl a resume --wait saved >"$dir/resumed.log" 2>&1 &
    runner=$!
    waitUntil hasState a "$pid" running
  fi
  : >"$dir/pause.go"
  wait "$runner" || fail "the program returned $?"
  # Without the fault points of virtual machines (machine-saved.sh, machine-stays.sh) and of native programs (process-native.sh).
  triedPoints() { points | grep -v '^machine\.\|^native\.' | if [ -n "$unable" ]; then grep -v '^process\.'; else cat; fi; }
  for point in $(triedPoints | cut -f1); do
    [ "$(countHits "$point" hit)" -gt 0 ] || fail "nobody came to $point"
  done
  [ "$(cut -d' ' -f1,2 "$dir/faults" | sort -u)" = "$(triedPoints | cut -f1,2 | tr '\t' ' ' | sort)" ] ||
    fail "another process came to a point than the list says"
  stopNode a
fi

# At the second hit, and only in the process to which the fault point belongs.
rm -f "$dir/faults"
VGPU_FAULT_POINT=suspend.gate-closed:kill:2 startNode b
startDouble b one
stillWorks b one
ctl b suspend one --to "$dir/x" >"$dir/suspend.log" 2>&1 && fail "a suspend without its daemon succeeded"
waitUntil ended "${daemon[b]}"
[ "$(countHits suspend.gate-closed hit) $(countHits suspend.gate-closed kill)" = "1 1" ] || fail "not at the second time"

VGPU_FAULT_POINT=program.gate-closing:stop startNode c
VGPU_FAULT_POINT=program.gate-closing:stop startDouble c two
ctl c suspend two --to "$dir/y" >"$dir/suspend.log" 2>&1 &
suspend=$!
waitUntil wasHit program.gate-closing stop
letGo "${double[two]}"
wait "$suspend" || fail "a program that was stopped for a while was not suspended"

VGPU_FAULT_POINT=no-such-point startNode d
says d 'VGPU_FAULT_POINT=no-such-point is not a fault point' || fail "an unknown point was taken"
