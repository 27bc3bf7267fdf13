# Launches are folded as the daemon's and the program's settings say; `ps` counts them; a session that migrates while its launches are
# folded loses nothing. VGPU_MOVES: number of migrations (default 3).
program=$tree/tests/programs/random-streams
[ -x "$program" ] || fail "there is no $program"

# launches NODE SESSION KEY
launches() { ctl "$1" ps --json | python3 -c '
import json, sys
print(*[s["launches"][sys.argv[2]] for s in json.load(sys.stdin) if s["name"] == sys.argv[1]])' "$2" "$3"; }
hasFolded() { [ "$(launches "$1" "$2" folded)" -gt 0 ]; }

# foldedBy NODE: folded launches of the last session that has ended.
foldedBy() { sed -n 's/.* has launched [0-9]* kernels, \([0-9]*\) of them in graphs/\1/p' "$dir/$1.log" | tail -n 1; }
ran() { says "$1" 'has launched'; }

startNode off --fold off
ctl off run -- "$program" 1 2 >"$dir/off-run.log" || fail "the program failed"
waitUntil ran off
[ "$(foldedBy off)" = 0 ] || fail "--fold off folded $(foldedBy off) launches"
VGPU_FOLD=always ctl off run -- "$program" 1 2 >"$dir/off-run.log" || fail "the program failed with VGPU_FOLD"
[ "$(grep -c 'has launched' "$dir/off.log")" = 2 ] || waitUntil grep -q 'kernels, [1-9][0-9]* of them' "$dir/off.log"
[ "$(foldedBy off)" -gt 0 ] || fail "VGPU_FOLD=always folded nothing"
stopNode off

startNode a --fold always
startNode b --fold always
LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} "$tree/bin/vgpuctl" --node "unix:$dir/a/vgpud.sock" run --name moving -- \
  "$program" 1 20 "$dir/end" >"$dir/moving.log" 2>&1 &
runner=$!
waitUntil lists a moving
waitUntil hasFolded a moving
from=a to=b
for ((move = 0; move < ${VGPU_MOVES:-3}; ++move)); do
  ctl "$from" suspend moving --to "$dir/snapshot$move" >"$dir/suspend.log" 2>&1 || fail "suspend $move failed"
  ctl "$to" resume "$dir/snapshot$move" >"$dir/resume.log" 2>&1 || fail "resume $move failed"
  rm -rf "$dir/snapshot$move"
  waitUntil hasFolded "$to" moving
  read -r from to <<<"$to $from"
done
touch "$dir/end"
waitUntil ended "$runner"
wait "$runner" || fail "the program that moved returned $?"
refusedUsage() { "$tree/bin/vgpud" --run-dir "$dir/c" --fold sometimes >"$dir/usage.log" 2>&1; [ $? = 2 ]; }
refusedUsage || fail "vgpud takes --fold sometimes"
