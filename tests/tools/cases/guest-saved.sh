# A virtual machine is saved to disk while its program works, with its session, and both are restored: in a new QEMU process, and on another
# node of the host. VGPU_SAVES: how many times (default 1).
# shellcheck source=../../guest/guest.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../guest/guest.sh"
makeImage steady
export VGPU_LINK_LIMIT=600  # a machine may be on disk for this long
for node in a b; do startNode "$node" --listen tcp:127.0.0.1:0; done
address=$(addressOf a)
card=(-netdev user,id=net -device virtio-net-pci,netdev=net)
onDisk() { [ -z "$(processesOfRun qemu-system-x86)" ]; }

startGuest guest 10.0.2.15/24 10.0.2.2 "tcp:10.0.2.2:${address##*:}" "${card[@]}"
inGuest guest "vgpuctl run --name steady -- /bin/steady /tmp/end &"
waitUntil says guest 'steady: begins'

# A save that is refused leaves the machine running.
refused "no session 'nobody'" ctl a machine save --qmp "$dir/guest.qmp" --session nobody "$dir/refused"
[ ! -e "$dir/refused" ] || fail "a save that was refused has left its folder"
mkdir "$dir/there"
refused "cannot make the folder .*/there for the sessions" ctl a machine save --qmp "$dir/guest.qmp" "$dir/there"
refused "is not saved and goes on" ctl a machine save --qmp "$dir/guest.qmp" --uri "tcp:127.0.0.1:1" "$dir/failed"
[ ! -e "$dir/failed" ] || fail "a save that failed has left its folder"
machineIs guest running && hasState a steady running || fail "the machine or its session does not run after a save that failed"
refused "no folder $dir/nothing" ctl b machine restore --qmp "$dir/guest.qmp" "$dir/nothing"

name=guest from=a to=b
for ((save = 0; save < ${VGPU_SAVES:-1}; ++save)); do
  succeeds ctl "$from" machine save --qmp "$dir/$name.qmp" "$dir/saved-$save"
  waitUntil onDisk
  hasState "$from" steady suspended || fail "the session is $(field "$from" steady state), not suspended"
  sleep 1
  startMachine "restored-$save" "" "${card[@]}" -incoming "exec:cat '$dir/saved-$save/machine'"
  name=restored-$save
  ctl "$to" machine restore --qmp "$dir/$name.qmp" "$dir/saved-$save" --json >"$dir/restore.log" 2>&1 || fail "machine restore returned $?"
  python3 -c '
import json, sys
report = json.load(sys.stdin)[0]
assert 0 < report["onGpuSeconds"] < report["seconds"]
print("restore: {onGpuSeconds:.3f} s for the GPU, {seconds:.3f} s until the program goes on".format(**report))' \
    <"$dir/restore.log" || fail "machine restore does not say how long the session took"
  hasState "$to" steady running || fail "the session is $(field "$to" steady state) after it was restored"
  read -r from to <<<"$to $from"
done
endSteady "$name"
endMachine "$name"
