# A program that opens the driver by its name, with or without a version, gets vgpu's. One that opens another driver by its path gets a
# warning, once.
startNode a
mkdir "$dir/elsewhere"
cp "$tree/lib/vgpu/libvgpu-emulator.so" "$dir/elsewhere/libcuda.so.1"
opens() {
  ctl a run -- python3 -c '
import ctypes, sys
for name in sys.argv[1:]: ctypes.CDLL(name)
print(*sorted({line.split()[-1] for line in open("/proc/self/maps") if "libcuda.so" in line}))' "$@" >"$dir/opened.log" 2>&1
}
opens libcuda.so libcuda.so.1 || fail "$(cat "$dir/opened.log")"
[ "$(cat "$dir/opened.log")" = "$(realpath "$tree/lib/vgpu/libcuda.so.1")" ] || fail "a program that opens libcuda.so gets $(cat "$dir/opened.log")"
opens libcuda.so.1 "$dir/elsewhere/libcuda.so.1" "$dir/elsewhere/libcuda.so.1" || fail "$(cat "$dir/opened.log")"
[ "$(grep -c "elsewhere/libcuda.so.1 is not vgpu's driver" "$dir/opened.log")" = 1 ] || fail "not said once: $(cat "$dir/opened.log")"
