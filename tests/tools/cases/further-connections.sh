# A program whose data goes over three further connections: while all of them break repeatedly, and while one of them does; while the node
# cannot be reached; and without further connections. VGPU_TRANSPORT: tcp or tls.
hasPort() { grep -qs '^[0-9]' "$dir/broken.port"; }
program=$tree/tests/programs/bulk-copies
[ -x "$program" ] || skip "no program bulk-copies"
transport=${VGPU_TRANSPORT:-tcp}
[ "$transport" != tls ] || succeeds "$tree/bin/vgpuctl" keys init
export VGPU_LINK_LIMIT=20 VGPU_LINK_CONNECTIONS=3
startNode a --listen "$transport:127.0.0.1:0"
address=$(addressOf a)
python3 "$(dirname "${BASH_SOURCE[0]}")/../broken-link" "${address##*:}" >"$dir/broken.port" 2>"$dir/broken.log" &
link=$!
waitUntil hasPort
broken=$transport:127.0.0.1:$(cat "$dir/broken.port")

# startCopies NAME: starts a program that copies until $dir/NAME.end exists.
startCopies() {
  LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} "$tree/bin/vgpuctl" --node "$broken" run --name "$1" -- "$program" "$dir/$1.end" \
    >"$dir/$1.log" 2>&1 &
  runner[$1]=$!
  waitUntil says "$1" copied
}
rounds() { grep -c '^copied' "$dir/$1.log"; }
copiesMore() { [ "$(rounds "$1")" -gt "$2" ]; }
goesOn() { waitUntil copiesMore "$1" "$(($(rounds "$1") + 1))"; }
endCopies() {
  touch "$dir/$1.end"
  waitUntil ended "${runner[$1]}"
  wait "${runner[$1]}" || fail "$1 returned $?"
  says "$1" "bulk-copies: ok" || fail "$1 did not copy as it should"
}
# relaysOfNode: process ids of the session's relay and of one relay for each further connection.
relaysOfNode() {
  local pid
  for pid in $(processesOfRun vgpu-relay); do
    tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q '^vgpu-relay node ' && echo "$pid"
  done
}
# findNewest: sets `newest` to the youngest relay by start time, because process ids wrap around. Never chooses the oldest, which is the
# session's own: relays of broken connections, which end a moment later, are still counted.
findNewest() {
  newest=$(for pid in $(relaysOfNode); do awk '{ print $22, $1 }' "/proc/$pid/stat"; done 2>/dev/null | sort -n |
    awk 'NR > 1 { last = $2 } END { print last }')
  [ -n "$newest" ]
}
hasRelays() { [ "$(relaysOfNode | wc -l)" -ge "$1" ]; }

startCopies one
waitUntil hasRelays 4
for round in 1 2 3 4 5 6; do
  kill -USR1 "$link"
  sleep "0.$round"
done
goesOn one
waitUntil hasRelays 4
for round in 1 2 3; do
  waitUntil findNewest
  kill -KILL "$newest"
  goesOn one
done
waitUntil hasRelays 4
kill -USR2 "$link"  # refuses connections for a while
sleep 1
kill -USR2 "$link"
goesOn one
endCopies one
waitUntil noRelays

# Without further connections.
VGPU_LINK_CONNECTIONS=0 startCopies none
[ "$(relaysOfNode | wc -l)" = 1 ] || fail "a session that wants no further connections has $(relaysOfNode | wc -l) processes"
kill -USR1 "$link"
goesOn none
endCopies none
waitUntil noRelays
kill -KILL "$link"
stopNode a
