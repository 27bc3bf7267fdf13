# A program that loads and unloads modules all the time migrates between two nodes: variables keep their addresses, and objects that were
# made ahead but are not needed are destroyed.
program=$tree/tests/programs/module-order
[ -x "$program" ] || skip "no program module-order"
startNode a
startNode b --listen tcp:127.0.0.1:0
LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} "$tree/bin/vgpuctl" --node "unix:$dir/a/vgpud.sock" run --name turning -- \
  "$program" "$dir/end" >"$dir/turning.log" 2>&1 &
turning=$!
waitUntil lists a turning
from=a to=b ahead=0
for ((move = 0; move < 6; ++move)); do
  ctl "$from" migrate turning --to "unix:$dir/$to/vgpud.sock" --json >"$dir/migrate.log" 2>"$dir/migrate-errors.log" ||
    fail "move $move failed: $(cat "$dir/migrate-errors.log")"
  ahead=$((ahead + $(reported migrate aheadObjects)))
  waitUntil lists "$to" turning
  read -r from to <<<"$to $from"
done
[ "$ahead" -gt 0 ] || fail "no object was made at a target before the program was held"
# To a node that it reaches by an address: its object list comes by relays from then on.
ctl "$from" migrate turning --to "$(addressOf b)" --json >"$dir/migrate.log" 2>"$dir/migrate-errors.log" ||
  fail "the move over a network failed: $(cat "$dir/migrate-errors.log")"
startNode c --listen tcp:127.0.0.1:0
for ((move = 0; move < 3; ++move)); do
  node=$([ $((move % 2)) = 0 ] && echo c || echo b)
  other=$([ $node = c ] && echo b || echo c)
  ctl "$other" migrate turning --to "$(addressOf $node)" --json >"$dir/migrate.log" 2>"$dir/migrate-errors.log" ||
    fail "move $move over a network failed: $(cat "$dir/migrate-errors.log")"
done
touch "$dir/end"
waitUntil ended "$turning"
wait "$turning" || fail "the program that moved returned $?: $(cat "$dir/turning.log")"
