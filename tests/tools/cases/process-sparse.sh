# Memory that a program has allocated but not touched takes no room when its process is saved, and is not resident after the resume: the
# program has touched 16 pages each of a GiB of pinned memory and a GiB of its own.
[ -z "${VGPU_PROGRAM_PRELOAD:-}" ] || skip "a sanitizer touches memory of its own"
startNode a
startNode b
needCriu a
[ -e "$tree/lib/vgpu/libcudart.so.13" ] || skip "no libcudart.so.13 in the tree"
cat >"$dir/sparse" <<'P'
import ctypes, mmap, os, sys
GIB, STEP = 1 << 30, 64 << 20
runtime = ctypes.CDLL("libcudart.so.13")
pinned, device = ctypes.c_void_p(), ctypes.c_void_p()
assert runtime.cudaMallocHost(ctypes.byref(pinned), ctypes.c_size_t(GIB)) == 0
assert runtime.cudaMalloc(ctypes.byref(device), ctypes.c_size_t(4096)) == 0
own = mmap.mmap(-1, GIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for at in range(0, GIB, STEP):
    text = b"page at %d" % at
    ctypes.memmove(pinned.value + at, text, len(text))
    own[at:at + len(text)] = text
print("ready", os.getpid(), flush=True)
sys.stdin.readline()
back = ctypes.create_string_buffer(64)
for at in range(0, GIB, STEP):
    text = b"page at %d" % at
    assert own[at:at + len(text)] == text
    assert runtime.cudaMemcpy(device, ctypes.c_void_p(pinned.value + at), ctypes.c_size_t(64), 1) == 0
    assert runtime.cudaMemcpy(back, device, ctypes.c_size_t(64), 2) == 0
    assert back.value == text, back.value
P
mkfifo "$dir/sparse.in"
LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} "$tree/bin/vgpuctl" --node "unix:$dir/a/vgpud.sock" run --name sparse -- python3 "$dir/sparse" \
  <"$dir/sparse.in" >"$dir/sparse.log" 2>&1 &
exec {file}>"$dir/sparse.in"
commands[sparse]=$file
waitUntil says sparse '^ready'
pid=$(pidOf sparse)
most=$((128 << 20))  # bytes, with room for the interpreter's own memory
residentIsSmall() {
  local kib
  kib=$(sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$pid/status")
  [ $((kib * 1024)) -lt "$most" ] || fail "the program has $kib KiB in memory"
}
residentIsSmall
ctl a suspend sparse --process --to "$dir/saved" --json >"$dir/saved.json" || fail "it was not saved"
python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["process"]["imageBytes"] >= int(sys.argv[2]))' \
  "$dir/saved.json" "$most" || fail "the image has more than was touched: $(grep imageBytes "$dir/saved.json")"
waitUntil ended "$pid"
ctl b resume --wait "$dir/saved" >"$dir/resume.log" 2>&1 &
runner[sparse]=$!
waitUntil hasState b sparse running
residentIsSmall
endContents sparse
stopNode a
stopNode b
