# vgpuctl is killed between any two steps of saving and restoring a process, or the program is killed while it is being saved: the program
# can be resumed or, if it was the victim, has ended.
startNode a
startNode b
needCriu a

# killedAt POINT COMMAND...: the command must be killed at this fault point.
killedAt() {
  local point=$1 code=0
  shift
  VGPU_FAULT_POINT=$point "$@" >"$dir/killed.log" 2>&1 || code=$?
  [ "$code" = 137 ] || fail "returned $code instead of being killed at $point"
}

for point in process.parked process.saved process.named; do
  startContents a held 2
  pid=$(field a held pid)
  killedAt "$point" ctl a suspend held --process --to "$dir/$point"
  alive "$pid" || fail "the program has ended with the vgpuctl that was killed at $point"
  succeeds ctl b resume "$dir/$point"
  hasState b held running || fail "after a kill at $point the session is $(field b held state)"
  memoryIsRight held
  endContents held
done

# The program itself is killed while it disconnects from the node.
VGPU_FAULT_POINT=process.letting-go startContents a victim 1
refused "the program has ended" ctl a suspend victim --process --to "$dir/victim"
wait "${runner[victim]}"
closeCommands victim
waitUntil listsNot a victim

# Restored, but no daemon has been told: it ends with its parent vgpuctl, as under `vgpuctl run`.
startContents a held 2
pid=$(field a held pid)
succeeds ctl a suspend held --process --to "$dir/restored"
VGPU_FAULT_POINT=process.restored ctl b resume "$dir/restored" >"$dir/killed.log" 2>&1 && fail "resume was not killed"
waitUntil ended "$pid"
succeeds ctl b resume "$dir/restored"
memoryIsRight held
endProgram held

# Its resume fails because a part of the snapshot is missing, on its own node and on another one: when the part is back it can be resumed on
# either, also after the other node has requested the program.
for order in "a a" "a b a" "b a b"; do
  startContents a held 2
  killedAt process.parked ctl a suspend held --process --to "$dir/parked"
  mv "$dir/parked/pack-00" "$dir/pack"
  for node in ${order% *}; do refused "pack-00" ctl "$node" resume "$dir/parked"; done
  mv "$dir/pack" "$dir/parked/pack-00"
  succeeds ctl "${order##* }" resume "$dir/parked"
  memoryIsRight held
  endContents held
  rm -r "$dir/parked"
done

# The target refuses the GPU's part: the restored process is ended, and can be restored again.
startContents a held 2
pid=$(field a held pid)
succeeds ctl a suspend held --process --to "$dir/good"
cp -r "$dir/good" "$dir/bad"
printf 'damage' | dd of="$dir/bad/pack-00" bs=1 seek=100 conv=notrunc 2>"$dir/dd.log"
refused "file pack-00: chunk" ctl b resume "$dir/bad"
waitUntil ended "$pid"
succeeds ctl b resume "$dir/good"
memoryIsRight held
endProgram held
stopNode a
stopNode b
