# Nothing about snapshots depends on the clock at their creation: snapshots from the future, from before 1970, and with an invalid time are
# listed, ordered by their program's number of calls, verified, collected and resumed.
export VGPU_STORE=$dir/store
startNode a
startNode b
startContents a one 2
succeeds ctl a suspend one --name before
succeeds ctl a resume before
tell one change changed
memoryIsRight one
succeeds ctl a suspend one --name latest
# made NAME SECONDS
made() { "$tree/tests/tools/reseal" "$VGPU_STORE/snapshots/$1/manifest.json" created "$2" || fail "cannot forge a manifest"; }
for clocks in "4102444800 0" "9223372036854775807 -62135596800" "0 -9223372036854775808"; do
  read -r before latest <<<"$clocks"
  made before "$before"
  made latest "$latest"
  succeeds ctl a snapshots ls
  for name in before latest; do grep -q "^$name .*contents" "$dir/succeeds.log" || fail "ls does not list $name: $(cat "$dir/succeeds.log")"; done
  succeeds ctl a snapshots show before
  succeeds ctl a snapshots show latest
  succeeds ctl a snapshots verify
  succeeds ctl a snapshots gc
  refused "snapshot latest is the latest of session" ctl a snapshots rm latest
  refused "the snapshot does not match the state in which the program waits" ctl b resume before
  hasState a one suspended || fail "the session is $(field a one state)"
  succeeds ctl b resume latest
  memoryIsRight one
  succeeds ctl b suspend one --name "newest$before"
  succeeds ctl a resume "newest$before"
  memoryIsRight one
  succeeds ctl a snapshots rm latest  # whatever its clock said, another snapshot is of a later position
  succeeds ctl a suspend one --name latest
done
succeeds ctl a snapshots rm before
succeeds ctl b resume latest
memoryIsRight one
endContents one
