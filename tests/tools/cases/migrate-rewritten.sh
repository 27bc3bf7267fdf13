# A program that rewrites all of its memory just before it is held, which is more than the pinned memory for that, still migrates.
program=$tree/tests/programs/rewritten
[ -x "$program" ] || skip "no program rewritten"
export VGPU_FAULT_LOG=$dir/faults
VGPU_FAULT_POINT=migrate.sent-ahead:stop startNode a
startNode b --listen tcp:127.0.0.1:0

LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} VGPU_PAUSE_FILE=$dir/pause VGPU_PAUSE_INDEX=all "$tree/bin/vgpuctl" \
  --node "unix:$dir/a/vgpud.sock" run --name rewriting -- "$program" >"$dir/rewriting.log" 2>&1 &
runner=$!
waitUntil test -e "$dir/pause.0.reached"
ctl a migrate rewriting --to "$(addressOf b)" >"$dir/migrate.log" 2>&1 &
migrating=$!
waitUntil grep -qs "^migrate.sent-ahead .* stop$" "$dir/faults"
touch "$dir/pause.0.go"
waitUntil test -e "$dir/pause.1.reached"
letGo "${daemon[a]}"
wait "$migrating" || fail "the migration returned $?"
touch "$dir/pause.1.go"
wait "$runner" || fail "the program that moved returned $?"
