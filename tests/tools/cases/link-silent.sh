# The link between two hosts is cut for longer than a connection may be silent, which only the relays notice: both give up the connection,
# and the program continues over a new one when the link is restored.
# shellcheck source=../../network/two-hosts.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../network/two-hosts.sh"
program=$tree/tests/programs/steady
[ -x "$program" ] || fail "there is no $program"
command -v ss >/dev/null || skip "there is no ss (Debian: iproute2)"
why=$(canMakeHosts) || skip "$why"
makeHosts "$tree/tests/network/delayed-link" 1000 500 || fail "there are no two hosts"
trap 'removeHosts; cleanUp' EXIT

onHost b "$tree/bin/vgpud" --run-dir "$dir/b" --device emulated --listen "tcp:$hostB:0" --allow-plain >"$dir/b.log" 2>&1 &
daemon[b]=$!
waitUntil readyOrEnded b
LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} VGPU_LINK_CONNECTIONS=0 onHost a "$tree/bin/vgpuctl" --node "$(addressOf b)" run --name working -- \
  "$program" "$dir/end" >"$dir/working.log" 2>&1 &
runner=$!
waitUntil lists b working
# connections HOST: ports of host a in the connections that HOST considers established.
connections() { onHost "$1" ss -Htn state established | grep -o "$hostA:[0-9]*" | sort; }
isOne() { [ "$(connections a | wc -l)" = 1 ]; }
isNone() { [ -z "$(connections a)$(connections b)" ]; }
waitUntil isOne
before=$(connections a)

cutLink
waitSeconds 60 isNone
hasState b working running || fail "the session is $(field b working state) while the link is cut"
joinLink
waitUntil isOne
[ "$(connections a)" != "$before" ] || fail "the connection that was given up is there again"
touch "$dir/end"
waitUntil ended "$runner"
wait "$runner" || fail "the program returned $?"
waitUntil noRelays
