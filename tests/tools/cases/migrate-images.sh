# The images of a program's modules are copied before it is held, and sent to another host before that.
program=$tree/tests/programs/linked-list
[ -x "$program" ] || skip "no program linked-list"
export VGPU_FAULT_LOG=$dir/faults
reached() { grep -qs "^migrate.sent-ahead .* stop$" "$dir/faults"; }
packBytes() { cat "$dir/$1"/renewals/*/snapshot/pack-* 2>/dev/null | wc -c; }
reported() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1" <"$dir/migrate.log"; }
imageBytes() {
  ctl "$1" ps --json | python3 -c '
import json, sys
images = json.load(sys.stdin)[0]["images"]
print(images["sentBytes"] + images["foundBytes"])'
}

startNode b --listen tcp:127.0.0.1:0
# movesImages NODE TARGET HOLDER: of a program that waits at a point where it has memory, the images are in the files of node HOLDER
# before it is held, and no more than its memory, whose pieces are too small to be digested, is copied afterwards.
movesImages() {
  rm -f "$dir/faults"
  VGPU_FAULT_POINT=migrate.sent-ahead:stop startNode "$1"
  LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} VGPU_PAUSE_FILE=$dir/at-$1 "$tree/bin/vgpuctl" --node "unix:$dir/$1/vgpud.sock" run \
    --name listed -- "$program" >"$dir/listed.log" 2>&1 &
  local listed=$! migrating images
  waitUntil test -e "$dir/at-$1.reached"
  images=$(imageBytes "$1")
  [ "$images" -gt 4096 ] || fail "the program has $images bytes of images"
  ctl "$1" migrate listed --to "$2" --json >"$dir/migrate.log" 2>"$dir/migrate-errors.log" &
  migrating=$!
  waitUntil reached
  [ "$(packBytes "$3")" -gt 0 ] || fail "no image is at node $3 before the program is held"
  kill -CONT "${daemon[$1]}"
  wait "$migrating" || fail "the migration returned $?"
  [ "$(reported heldBytes)" -le "$(reported deviceBytes)" ] || fail "$(reported heldBytes) bytes were copied while it was held"
  [ "$(reported roundBytes)" -ge "$images" ] || fail "$(reported roundBytes) bytes were copied while it ran; its images are $images"
  touch "$dir/at-$1.go"
  wait "$listed" || fail "the program that moved returned $?"
}
movesImages near "$dir/b" near
movesImages far "$(addressOf b)" b
