# A virtual machine, under software emulation, without a network: its CUDA programs reach the host through an ivshmem device. It is saved
# to disk with a program in the middle, ended, and goes on from there.
# shellcheck source=../../guest/guest.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../guest/guest.sh"
makeImage vector-add steady
memory=$(guestFolder guest)/memory
startNode host --guest "guest=$memory,256MiB"
device=(-object "memory-backend-file,id=vgpu,mem-path=$memory,size=256M,share=on" -device ivshmem-plain,memdev=vgpu,master=on)
startMachine guest "vgpu.node=ivshmem:" "${device[@]}"
waitUntil says guest "guest: ready"
guestReturns guest "vgpuctl run -- /bin/vector-add 3000"
says guest 'vector-add: ok' || fail "the program has not said that its answer is right"

inGuest guest "vgpuctl run --name steady -- /bin/steady /tmp/end &"
waitUntil lists host steady
waitUntil says guest 'steady: begins'
succeeds ctl host suspend steady --to "$dir/steady"
succeeds ctl host resume "$dir/steady"
hasState host steady running || fail "the machine's session is $(field host steady state)"

# Saved to disk with its session, and on from there.
succeeds ctl host machine save --qmp "$dir/guest.qmp" "$dir/saved"
waitUntil ended "${machine[guest]}"
hasState host steady suspended || fail "the session is $(field host steady state), not suspended"
startMachine again "vgpu.node=ivshmem:" "${device[@]}" -incoming "exec:cat $dir/saved/machine"
succeeds ctl host machine restore --qmp "$dir/again.qmp" "$dir/saved"
hasState host steady running || fail "the session of the machine that goes on is $(field host steady state)"

guestReturns again "touch /tmp/end; wait"
says again 'steady: ok' || fail "the program has not said that its answer is right"
endMachine again
stopNode host
