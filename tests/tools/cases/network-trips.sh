# A program whose GPU is across a network needs no round trip to launch, to allocate, to copy asynchronously and to record events, and one
# to wait or to read: its messages are counted on their way.
program=$tree/tests/programs/network-trips
[ -x "$program" ] || skip "no program network-trips"
hasPort() { grep -qs '^[0-9]' "$dir/counting.port"; }

startNode a --listen tcp:127.0.0.1:0
address=$(addressOf a)
python3 "$(dirname "${BASH_SOURCE[0]}")/../counting-link" "${address##*:}" "$dir/counter" >"$dir/counting.port" 2>"$dir/counting.log" &
waitUntil hasPort
export VGPU_LINK_COUNTER=$dir/counter VGPU_LINK_CONNECTIONS=0 LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-}
timeout "$limit" "$tree/bin/vgpuctl" --node "tcp:127.0.0.1:$(cat "$dir/counting.port")" run -- "$program" >"$dir/trips.log" 2>&1 ||
  fail "the program returned $?"
says trips "a read: 1 round trips" || fail "nothing was counted"
