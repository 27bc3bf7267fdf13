# A virtual machine, under software emulation, without a network: its CUDA programs reach the host through an ivshmem device. It is saved to
# disk while a program runs, ended, and restored on another host.
# shellcheck source=../../guest/guest.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../guest/guest.sh"
makeImage vector-add steady pinned-exchange
memory=$(guestFolder guest)/memory
startNode host --guest "guest=$memory,256MiB"
# Two processors, because with one, software emulation does not make the guest's atomics atomic for the host.
device() { echo -smp 2 -object "memory-backend-file,id=vgpu,mem-path=$memory,size=256M,share=on" -device ivshmem-plain,memdev=vgpu,master=on; }
# shellcheck disable=SC2046
startMachine guest "vgpu.node=ivshmem:" $(device)
waitUntil says guest "guest: ready"
guestReturns guest "vgpuctl run -- /bin/pinned-exchange 12"  # kernels and the program poll each other's writes
worksAt host guest

# Saves the machine to disk with its session, and restores it on another host: a node with another shared memory for it.
succeeds ctl host machine save --qmp "$dir/guest.qmp" "$dir/saved"
waitUntil ended "${machine[guest]}"
waitUntil listsNot host steady
stopNode host
memory=$(guestFolder other)/memory
startNode other --guest "guest=$memory,256MiB"
# shellcheck disable=SC2046
startMachine again "vgpu.node=ivshmem:" $(device) -incoming defer
succeeds ctl other machine restore --qmp "$dir/again.qmp" "$dir/saved"
hasState other steady running || fail "the session of the machine that goes on is $(field other steady state)"

endSteady again
endMachine again
stopNode other
