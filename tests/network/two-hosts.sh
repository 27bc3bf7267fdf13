# Two network namespaces that act as hosts, joined by a link with a rate and a delay (delayed-link.cc). To be sourced: makeHosts, onHost,
# cutLink, joinLink, reorderLink, removeHosts. Needs root and /dev/net/tun; canMakeHosts fails with the reason if it cannot.
# shellcheck shell=bash
hostA=10.231.7.1 hostB=10.231.7.2  # their addresses

canMakeHosts() {
  [ "$(id -u)" = 0 ] || { echo "needs root for network namespaces"; return 1; }
  [ -c /dev/net/tun ] || { echo "there is no /dev/net/tun"; return 1; }
  command -v ip >/dev/null || { echo "there is no ip (Debian: iproute2)"; return 1; }
  ip netns add "vgpu-try-$$" 2>/dev/null || { echo "network namespaces cannot be made here"; return 1; }
  ip netns del "vgpu-try-$$"
}

# makeHosts PROGRAM MBIT-PER-SECOND MICROSECONDS-EACH-WAY: PROGRAM is delayed-link.
makeHosts() {
  local log
  hosts=(vgpu-a-$$ vgpu-b-$$)
  ip netns add "${hosts[0]}" && ip netns add "${hosts[1]}" || return 1
  log=$(mktemp)
  "$1" "${hosts[@]}" "$2" "$3" >"$log" &
  linkProcess=$!
  until grep -q ready "$log"; do
    kill -0 "$linkProcess" || return 1
    sleep 0.02
  done
  rm "$log"
  ip -n "${hosts[0]}" addr add "$hostA/30" dev wire0
  ip -n "${hosts[1]}" addr add "$hostB/30" dev wire0
  local host
  for host in "${hosts[@]}"; do
    ip -n "$host" link set lo up
    ip -n "$host" link set dev wire0 mtu 65000 up
  done
}
# onHost a|b COMMAND...
onHost() {
  local number=0
  [ "$1" = a ] || number=1
  ip netns exec "${hosts[$number]}" "${@:2}"
}
cutLink() { kill -USR1 "$linkProcess"; }
joinLink() { kill -USR1 "$linkProcess"; }
reorderLink() { kill -USR2 "$linkProcess"; }
removeHosts() {
  kill "$linkProcess" 2>/dev/null
  wait "$linkProcess" 2>/dev/null
  ip netns del "${hosts[0]}"
  ip netns del "${hosts[1]}"
}
