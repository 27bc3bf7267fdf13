# vgpuctl run: the program's exit code and signals, and programs that cannot be run.
[ -e "$tree/lib/vgpu/libcudart.so.13" ] || skip "no libcudart.so.13 in the tree"
startNode a
expectCode() {
  local expected=$1 code=0
  shift
  "$@" >"$dir/run.log" 2>&1 || code=$?
  [ "$code" = "$expected" ] || fail "returned $code instead of $expected: $*"
}
expectCode 0 ctl a run -- /bin/true
expectCode 7 ctl a run -- /bin/sh -c 'exit 7'
expectCode 7 ctl a run /bin/sh -c 'exit 7' --version
expectCode 139 ctl a run -- /bin/sh -c 'kill -SEGV $$'
says run 'was killed by signal 11' || fail "the signal is not named"
refused "there is no program" ctl a run -- "$dir/nothing"
refused "in PATH" ctl a run -- no-such-program-anywhere
touch "$dir/plain"
refused "is not executable" ctl a run -- "$dir/plain"

# The program's environment: vgpu's libraries precede the existing ones, and its name is set.
# shellcheck disable=SC2016
LD_LIBRARY_PATH=/some/where expectCode 0 ctl a run --name fancy -- \
  /bin/sh -c 'echo "$LD_PRELOAD|$LD_LIBRARY_PATH|$VGPU_NODE|$VGPU_SESSION_NAME"'
lib=$(realpath "$tree")/lib/vgpu
preload=$lib/libcudart.so.13:$lib/libcuda.so.1:$lib/libcublasLt.so.13:$lib/libcublas.so.13${VGPU_PROGRAM_PRELOAD:+:$VGPU_PROGRAM_PRELOAD}
says run "^$preload|$lib:/some/where|unix:$dir/a/vgpud.sock|fancy$" || fail "wrong environment"

# Signals to vgpuctl are forwarded to the program.
# shellcheck disable=SC2016
ctl a run -- /bin/sh -c 'trap "exit 5" USR1; echo started; while :; do sleep 0.1; done' >"$dir/signal.log" 2>&1 &
runner=$!
waitUntil says signal started
kill -USR1 "$(processesOfRun vgpuctl)" || fail "no vgpuctl to signal"
code=0
wait "$runner" || code=$?
[ "$code" = 5 ] || fail "a signal gave $code"

# No library can be preloaded into these programs.
printf 'int main(void) { return 0; }\n' >"$dir/static.c"
if cc -static -o "$dir/static" "$dir/static.c" 2>/dev/null; then
  refused "linked statically with its C library" ctl a run -- "$dir/static"
fi
mkdir "$dir/has space"
cp -r "$tree/bin" "$tree/lib" "$dir/has space"
refused "takes no path with spaces or colons" "$dir/has space/bin/vgpuctl" --node "$dir/a" run -- /bin/true

# Without a daemon a private one is started, which ends with the program.
mkdir "$dir/runtime"
# shellcheck disable=SC2016
LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} XDG_RUNTIME_DIR=$dir/runtime expectCode 4 timeout "$limit" "$tree/bin/vgpuctl" run -- /bin/sh -c 'echo "$VGPU_NODE"; exit 4'
says run 'this program has a private one' || fail "the private daemon is not mentioned"
says run "no vgpud runs on $dir/runtime/vgpu" || fail "it is not said that there is no daemon"
isEmpty "$dir/runtime" || fail "the private daemon's directory is left"

# A socket that exists, but is not a vgpud's, is not reported as absent.
mkdir "$dir/runtime/vgpu"
python3 - "$dir/runtime/vgpu/vgpud.sock" >"$dir/mute.log" 2>&1 <<'END' &
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("listens", flush=True)
while True: s.accept()[0].close()
END
mute=$!
waitUntil says mute listens
LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} XDG_RUNTIME_DIR=$dir/runtime expectCode 0 timeout "$limit" "$tree/bin/vgpuctl" run -- /bin/true
kill "$mute"
says run "$dir/runtime/vgpu/vgpud.sock closed the connection" || fail "what answers there is not named"
says run 'no vgpud runs' && fail "who answers is called absent"
says run 'this program has a private one' || fail "the private daemon is not mentioned"
