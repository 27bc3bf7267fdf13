# A virtual machine, under software emulation: its CUDA programs run on virtual GPUs of the host, which they reach over its network.
# shellcheck source=../../guest/guest.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../guest/guest.sh"
makeImage vector-add steady
startNode host --listen tcp:127.0.0.1:0

address=$(addressOf host)
startUserGuest guest "tcp:10.0.2.2:${address##*:}"
guestReturns guest "vgpuctl run -- /bin/vector-add 3000"
says guest 'vector-add: ok' || fail "the program has not said that its answer is right"

# One that works without a pause, suspended and resumed meanwhile.
inGuest guest "vgpuctl run --name steady -- /bin/steady /tmp/end &"
waitUntil lists host steady
waitUntil says guest 'steady: begins'
succeeds ctl host suspend steady --to "$dir/steady"
succeeds ctl host resume "$dir/steady"
hasState host steady running || fail "the guest's session is $(field host steady state)"
guestReturns guest "touch /tmp/end; wait"
says guest 'steady: ok' || fail "the program has not said that its answer is right"
endMachine guest
