# Libraries that have a face: which calls reach the genuine library, which library a program gets, and the errors without a genuine library.
doubles=$tree/tests/libraries
[ -e "$doubles/libcublas.so.13" ] || skip "no recording libraries in $doubles"
cat >"$dir/create.c" <<'C'
#include <stdio.h>
int cublasCreate_v2(void**);
int main(void) {
  void* handle;
  return printf("%d %d\n", cublasCreate_v2(&handle), cublasCreate_v2(&handle)) < 0;
}
C
create="import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
print(library.cublasCreate_v2(ctypes.byref(ctypes.c_void_p())), library.cublasCreate_v2(ctypes.byref(ctypes.c_void_p())))"
# The recording library returns 0, the face on a node without the library 1.
LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} LD_LIBRARY_PATH=$doubles python3 -c "$create" libcublas.so.13 | grep -qx '0 0' || fail "the recording library does not work"

# Without a genuine library a call returns an error, and one line gives the reason.
startNode a
ctl a run -- python3 -c "$create" libcublas.so.13 >"$dir/absent.log" 2>&1 || fail "a program without the library ended"
says absent '^1 1$' || fail "it has a library"
[ "$(grep -c '^vgpu: cublasCreate_v2: there is no libcublas.so.13' "$dir/absent.log")" = 1 ] || fail "it is not said once"

# A program that opens the vendor's library by its path gets the face; so does a program linked with a run path that precedes all others.
mkdir "$dir/vendor"
cp "$doubles"/libcublas{,Lt}.so.13 "$dir/vendor"
ctl a run -- python3 -c "$create" "$dir/vendor/libcublas.so.13" >"$dir/path.log" 2>&1 || fail "opening by path ended the program"
says path '^1 1$' || fail "a library opened by its path is not the face"
cc "$dir/create.c" -o "$dir/linked" -Wl,--disable-new-dtags,-rpath,"$dir/vendor" "$dir/vendor/libcublas.so.13" || fail "cannot link"
"$dir/linked" | grep -qx '0 0' || fail "the run path does not lead to the recording library"
ctl a run -- "$dir/linked" >"$dir/linked.log" 2>&1 || fail "a program with a run path ended"
says linked '^1 1$' || fail "a program with a run path does not get the face"

# With a genuine library, every argument arrives.
program=$tree/tests/programs/library-families
[ -e "$program" ] || skip "no $program: the toolkit has no headers of cuBLAS"
VGPU_LIBRARIES=$doubles VGPU_RECORD=$dir/calls startNode b
ctl b run -- env VGPU_LIBRARIES="$doubles" "$program" || fail "the program failed"
head -n 40 "$dir/calls" | sed -E 's/ [0-9a-f]{16,}/ */g' | diff "${BASH_SOURCE[0]%/*}/libraries.expected" - >"$dir/calls.log" ||
  fail "other calls were recorded than expected"
waitUntil says b 'is not reused: it has called a library'

# Arguments that frames cannot carry are refused by name.
grouped='import ctypes
blas = ctypes.CDLL("libcublas.so.13")
handle = ctypes.c_void_p()
assert blas.cublasCreate_v2(ctypes.byref(handle)) == 0
groups = 4000
whole, scalars, pointers = (ctypes.c_int * groups)(), (ctypes.c_float * groups)(), ctypes.c_void_p(0x200000000000)
print(blas.cublasSgemmGroupedBatched(handle, whole, whole, whole, whole, whole, scalars, pointers, whole, pointers, whole,
                                     scalars, pointers, whole, groups, whole))'
ctl b run -- env VGPU_LIBRARIES="$doubles" python3 -c "$grouped" >"$dir/grouped.log" 2>&1 || fail "a call with many groups ended the program"
says grouped '^15$' || fail "a call with many groups has another status than CUBLAS_STATUS_NOT_SUPPORTED"
says grouped '^vgpu: cublasSgemmGroupedBatched: its arrays in host memory have [0-9]* bytes' || fail "it is not said why"

# A node without the library refuses the snapshot; a node that has the library resumes the program.
VGPU_PAUSE_FILE=$dir/pause ctl b run --name paused -- env VGPU_LIBRARIES="$doubles" "$program" >"$dir/paused.log" 2>&1 &
runner=$!
waitUntil test -e "$dir/pause.reached"
succeeds ctl b suspend paused --to "$dir/snapshot"
refused "the library object .* cannot be created again on GPU 0 here" ctl a resume "$dir/snapshot"
succeeds ctl b resume "$dir/snapshot"
: >"$dir/pause.go"
wait "$runner" || fail "the program failed after its resume"
