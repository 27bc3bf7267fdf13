# A virtual machine, under software emulation: its CUDA programs run on virtual GPUs of the host, which they reach over its network.
# shellcheck source=../../guest/guest.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../guest/guest.sh"
makeImage vector-add steady
startNode host --listen tcp:127.0.0.1:0

address=$(addressOf host)
startUserGuest guest "tcp:10.0.2.2:${address##*:}"
worksAt host guest
endSteady guest
endMachine guest
