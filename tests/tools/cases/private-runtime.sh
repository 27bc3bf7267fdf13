# Libraries with a CUDA runtime of their own that vgpu cannot replace, such as stripped ones without a table of their functions: loading one
# prints no message, and one line names it at its first driver call. The program goes on.
[ -e "$tree/lib/vgpu/libcudart.so.13" ] || skip "no libcudart.so.13 in the tree"
plugin=$tree/tests/programs/dlopen-plugin.so
[ -e "$plugin" ] || skip "no $plugin"
for name in first second; do
  strip -o "$dir/$name.so" "$plugin" || fail "strip failed"
  python3 - "$dir/$name.so" <<'END' || fail "the library keeps its unwind table"
import struct, sys
with open(sys.argv[1], "r+b") as file:
    header = file.read(64)
    at, = struct.unpack_from("<Q", header, 32)
    bytes, count = struct.unpack_from("<HH", header, 54)
    for place in range(at, at + bytes * count, bytes):
        file.seek(place)
        if struct.unpack("<I", file.read(4))[0] == 0x6474e550:  # PT_GNU_EH_FRAME
            file.seek(place)
            file.write(struct.pack("<I", 0))
            sys.exit(0)
sys.exit(1)
END
done
startNode a

load='import ctypes, sys; libraries = [ctypes.CDLL(path) for path in sys.argv[1:]]'
ctl a run -- python3 -c "$load" "$dir/first.so" "$dir/second.so" >"$dir/loaded.log" 2>&1 || fail "loading ended the program"
[ ! -s "$dir/loaded.log" ] || fail "something is said of libraries that are only loaded: $(cat "$dir/loaded.log")"

# As dependencies of a program.
# shellcheck disable=SC2016
ctl a run -- /bin/sh -c 'LD_PRELOAD=$LD_PRELOAD:$1 exec /bin/echo runs' sh "$dir/first.so" >"$dir/linked.log" 2>&1 ||
  fail "a library linked with the program ended it"
[ "$(cat "$dir/linked.log")" = runs ] || fail "something is said of a library that is only linked: $(cat "$dir/linked.log")"

# A call ends the process that makes it, so each library is tested in its own process. It calls the driver more than once.
call="import os
$load
for library in libraries:
    child = os.fork()
    if child == 0:
        library.runPlugin()
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 1, status"
ctl a run -- python3 -c "$call" "$dir/first.so" "$dir/second.so" >"$dir/called.log" 2>&1 || fail "the CUDA calls of a library work"
[ "$(grep -c '^vgpu: ' "$dir/called.log")" = 2 ] || fail "not one line a library: $(cat "$dir/called.log")"
says called "^vgpu: $dir/first.so calls cuGetExportTable for private tables of NVIDIA's driver" || fail "the first library is not named"
says called "^vgpu: $dir/second.so calls cuGetExportTable for private tables of NVIDIA's driver" || fail "the second library is not named"
