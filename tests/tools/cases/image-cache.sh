# A program's second run sends no images; if the cache is damaged or missing it sends them again, and always goes on.
program=$tree/tests/programs/many-kernels
[ -x "$program" ] || skip "no $program"

# images NODE: "SENT FOUND", in images, as `ps --json` reports for the node's only session, while it waits at its pause point; fails unless
# the counts of bytes agree.
images() {
  ctl "$1" ps --json | python3 -c '
import json, sys
[session] = json.load(sys.stdin)
images = session["images"]
assert (images["sent"] == 0) == (images["sentBytes"] == 0), images
assert (images["found"] == 0) == (images["foundBytes"] == 0), images
print(images["sent"], images["found"])'
}

# begin NODE [KERNELS]: runs the program up to its pause point; finish NODE: runs the rest, whose results must be right.
begin() {
  rm -f "$dir"/pause.*
  VGPU_PAUSE_FILE=$dir/pause ctl "$1" run -- "$program" "${2:-100}" >"$dir/program.log" 2>&1 &
  runner=$!
  waitUntil test -e "$dir/pause.reached"
  read -r pid <"$dir/pause.reached"
}
finish() {
  : >"$dir/pause.go"
  wait "$runner" || fail "the program returned $?"
  says program 'many-kernels: ok' || fail "the program was wrong"
  waitUntil isEmpty "$dir/$1/sessions"
}
# runs NODE "SENT FOUND" [KERNELS]: a whole run. Programs with the same number of kernels have the same image.
runs() {
  begin "$1" "${3:-}"
  [ "$(images "$1")" = "$2" ] || fail "'$(images "$1")' images were sent and found, not '$2'"
  finish "$1"
}

startNode a --image-cache "$dir/kept"
runs a "1 0"
runs a "0 1"
runs a "1 0" 50
begin a
ctl a ps >"$dir/ps.log"
says ps ' 0 of 1 sent ' || fail "people are not told"
finish a
[ "$(stat -c %a "$dir/kept" "$dir/kept/images" "$dir/kept/compiled" | sort -u)" = 700 ] || fail "the cache is not private"
for file in "$dir"/kept/images/*; do
  [ "$(stat -c %a "$file")" = 600 ] || fail "$file is not private"
done

# Another daemon with the same folder, and the default one: below XDG_CACHE_HOME, which this case sets.
startNode b --image-cache "$dir/kept"
runs b "0 1"
startNode default
runs default "1 0"
runs default "0 1"
isEmpty "$XDG_CACHE_HOME/vgpu/images" && fail "the default cache is elsewhere"

# Settings for the driver's own cache that workers get; a user's own settings are kept.
workerSays() { tr '\0' '\n' <"/proc/$(processesOfRun vgpu-worker | tail -n 1)/environ" | grep -qx "$1"; }
stopNode a
stopNode b
stopNode default
startNode a --image-cache "$dir/kept" --image-cache-size 500MiB
workerSays "CUDA_CACHE_PATH=$dir/kept/compiled" || fail "the driver's cache has no place"
workerSays "CUDA_CACHE_MAXSIZE=$((500 << 20))" || fail "the driver's cache has another size"
stopNode a
CUDA_CACHE_PATH=/somewhere CUDA_COREDUMP_FILE=/elsewhere startNode a --image-cache "$dir/kept"
workerSays "CUDA_CACHE_PATH=/somewhere" || fail "the user's choice is overridden"
workerSays "CUDA_COREDUMP_FILE=/elsewhere" && fail "a fault of the GPU would end the worker with a dump"

# Every file is damaged in a different way: the images are sent again, and found after that.
count=0
for file in "$dir"/kept/images/*; do
  case $((count++ % 2)) in
    0) printf 'x' | dd of="$file" bs=1 seek=4200 conv=notrunc 2>/dev/null ;;
    1) truncate -s -1 "$file" ;;
  esac
done
[ "$count" = 2 ] || fail "there are $count images in the cache, not 2"
for kernels in 100 50; do
  runs a "1 0" "$kernels"
  runs a "0 1" "$kernels"
done
says a 'is removed: its image.s checksum does not match' && says a 'is removed: it has .* bytes, which its header does not say' ||
  fail "not said that files were damaged"

# The folder is removed while the daemon runs.
rm -r "$dir/kept"
runs a "1 0"
stopNode a

# Without a cache every run sends its images, and workers keep the driver's own cache.
startNode none --image-cache none
runs none "1 0"
runs none "1 0"
! workerSays 'CUDA_CACHE_PATH=.*' || fail "the driver's cache was moved"

# A session whose images came from the cache is resumed on a node without the folder.
startNode a --image-cache "$dir/gone"
runs a "1 0"
begin a
[ "$(images a)" = "0 1" ] || fail "the cache did not have the images"
succeeds ctl a suspend "$pid" --to "$dir/snapshot"
[ "$(images a)" = "0 0" ] || fail "a session without a worker has images"
rm -r "$dir/gone"
succeeds ctl none resume "$dir/snapshot"
[ "$(images none)" = "0 0" ] || fail "images of a snapshot are counted"
finish a

# Folders that others can write to, and invalid sizes.
mkdir -m 777 "$dir/open"
refused "the image cache cannot be used: $dir/open can be written by others" "$tree/bin/vgpud" --run-dir "$dir/x" --device emulated --image-cache "$dir/open"
touch "$dir/file"
refused "the image cache cannot be used: $dir/file cannot be" "$tree/bin/vgpud" --run-dir "$dir/x" --device emulated --image-cache "$dir/file"
for size in 0 much -1; do
  code=0
  "$tree/bin/vgpud" --run-dir "$dir/x" --image-cache-size "$size" >"$dir/usage.log" 2>&1 || code=$?
  [ "$code" = 2 ] || fail "--image-cache-size $size is no usage error"
done
# If the default folder cannot be used, the daemon works without a cache.
XDG_CACHE_HOME=$dir/file startNode without
says without 'there is no image cache: ' || fail "not said that there is no cache"
runs without "1 0"
