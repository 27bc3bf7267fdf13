# The images of a program's modules are sent before it is held, and the target makes modules and kernels from them ahead.
program=$tree/tests/programs/linked-list
[ -x "$program" ] || skip "no program linked-list"
imageBytes() {
  ctl "$1" ps --json | python3 -c '
import json, sys
images = json.load(sys.stdin)[0]["images"]
print(images["sentBytes"] + images["foundBytes"])'
}

# Its object list, which is written up to a tenth of a second later, has a kernel.
isListed() { ctl "$1" inspect listed | finds function; }

startNode b --listen tcp:127.0.0.1:0
# movesImages NODE TARGET: migrates a program that waits at a point where it has memory; while it is held, at most that memory is copied,
# whose pieces are too small to be digested.
movesImages() {
  startNode "$1"
  LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} VGPU_PAUSE_FILE=$dir/at-$1 "$tree/bin/vgpuctl" --node "unix:$dir/$1/vgpud.sock" run \
    --name listed -- "$program" >"$dir/listed.log" 2>&1 &
  local listed=$! images
  waitUntil test -e "$dir/at-$1.reached"
  waitUntil isListed "$1"
  images=$(imageBytes "$1")
  [ "$images" -gt 4096 ] || fail "the program has $images bytes of images"
  ctl "$1" migrate listed --to "$2" --json >"$dir/migrate.log" 2>"$dir/migrate-errors.log" || fail "the migration returned $?"
  [ "$(reported migrate heldBytes)" -le "$(reported migrate deviceBytes)" ] ||
    fail "$(reported migrate heldBytes) bytes were copied while it was held"
  [ "$(reported migrate roundBytes)" -ge "$images" ] ||
    fail "$(reported migrate roundBytes) bytes were copied while it ran; its images are $images"
  [ "$(reported migrate aheadObjects)" -ge 2 ] ||
    fail "$(reported migrate aheadObjects) objects were made before it was held, and it has a module and kernels"
  touch "$dir/at-$1.go"
  wait "$listed" || fail "the program that moved returned $?"
}
movesImages near "$dir/b"
movesImages far "$(addressOf b)"
