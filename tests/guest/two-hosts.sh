# Guests on two hosts, which are network namespaces (tests/network/two-hosts.sh): to be sourced after guest.sh. A guest keeps its address
# when it moves, as if both hosts were in one network.
# shellcheck shell=bash
# shellcheck source=../network/two-hosts.sh
source "$guests/../network/two-hosts.sh"
declare -gA nodeOptions
guestAddress=10.231.8.2 guestGateway=10.231.8.1

# makeGuestHosts: makes two hosts, each with a network card for a guest and a node. The nodes' addresses are in ${address[a]} and [b]; their
# options are ${nodeOptions[a]} and [b], if set.
makeGuestHosts() {
  local why host
  why=$(canMakeHosts) || skip "$why"
  makeHosts "$tree/tests/network/delayed-link" 1000 200 || fail "there are no two hosts"
  trap 'removeHosts; cleanUp' EXIT
  for host in a b; do
    onHost "$host" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
    onHost "$host" ip tuntap add dev card0 mode tap
    onHost "$host" ip link set dev card0 address 02:00:00:00:00:01 up  # the same on both hosts, because the guest caches it
    onHost "$host" ip addr add "$guestGateway/32" dev card0
  done
  declare -gA address=()
  # shellcheck disable=SC2086
  startHostNode a "$hostA" ${nodeOptions[a]:-}
  # shellcheck disable=SC2086
  startHostNode b "$hostB" ${nodeOptions[b]:-}
  guestIsOn a
}
# startHostNode HOST IP [OPTION...]
startHostNode() {
  onHost "$1" "$tree/bin/vgpud" --run-dir "$dir/$1" --device emulated --listen "tcp:$2:0" --allow-plain "${@:3}" >"$dir/$1.log" 2>&1 &
  daemon[$1]=$!
  waitUntil readyOrEnded "$1"
  says "$1" '^vgpud: ready' || fail "vgpud $1 did not become ready"
  address[$1]=$(addressOf "$1")
}
# guestIsOn a|b: routes the guest's address to that host.
guestIsOn() {
  if [ "$1" = a ]; then
    onHost a ip route replace "$guestAddress/32" dev card0
    onHost b ip route replace "$guestAddress/32" via "$hostA"
  else
    onHost b ip route replace "$guestAddress/32" dev card0
    onHost a ip route replace "$guestAddress/32" via "$hostB"
  fi
}
card=(-netdev tap,id=net,ifname=card0,script=no,downscript=no -device virtio-net-pci,netdev=net,mac=52:54:00:00:00:01)
startHostGuest() {  # NAME: on host a, which uses node a
  inNamespace=(ip netns exec "${hosts[0]}")
  startGuest "$1" "$guestAddress/24" "$guestGateway" "${address[a]}" "${card[@]}"
}
# startIncoming NAME a|b URI: starts a machine that waits for a guest's state.
startIncoming() {
  local number=0
  [ "$2" = a ] || number=1
  inNamespace=(ip netns exec "${hosts[$number]}")
  startMachine "$1" "" "${card[@]}" -incoming defer
  qmp "$1" migrate-incoming "{\"uri\": \"$3\"}" >/dev/null || fail "the machine $1 does not listen"
}
