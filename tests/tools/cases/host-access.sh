# A device whose kernels can access all memory of their process: the daemon warns once, however many workers it starts, and programs see the
# attribute as unsupported.
program=$tree/tests/programs/device-query
[ -e "$program" ] || skip "no $program"
startNode plain
VGPU_EMULATED=pageable=1 startNode open
for node in plain open; do
  for _ in 1 2; do ctl $node run -- "$program" >>"$dir/$node-program.log" 2>&1 || fail "a program on $node failed"; done
done
[ "$(grep -c 'all memory of the worker' "$dir/open.log")" = 1 ] || fail "the daemon did not warn once"
says plain 'all memory of the worker' && fail "the daemon warns of a device that cannot"
# shellcheck disable=SC2016
ctl open run -- python3 -c '
import ctypes
cuda, value = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(-1)
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetAttribute(ctypes.byref(value), 88, 0) == 0
print("pageable memory access", value.value)' >"$dir/told.log" 2>&1 || fail "the attribute cannot be asked for"
says told '^pageable memory access 0$' || fail "the program is told of an access that its memory does not have"
