# Wrong usage returns 2 and names what is missing; help and version return 0.
expectCode() {
  local expected=$1 code=0
  shift
  "$@" >"$dir/usage.log" 2>&1 || code=$?
  [ "$code" = "$expected" ] || fail "returned $code instead of $expected: $*"
}
for words in "" "frobnicate" "suspend" "suspend --to x" "suspend x --to y --name z" "snapshot x --to memory" "snapshots" "snapshots rm" "snapshots show" "resume" "clone" "clone x --count 0" "inspect" "run" "ps extra" "ps --what" "machine" "machine follow" "machine follow --qmp x" "machine save --qmp x"; do
  # shellcheck disable=SC2086
  expectCode 2 "$tree/bin/vgpuctl" $words
done
for words in --help --version "suspend --help" "run --help" "snapshots --help"; do
  # shellcheck disable=SC2086
  expectCode 0 "$tree/bin/vgpuctl" $words
done
expectCode 2 "$tree/bin/vgpud" --what
expectCode 0 "$tree/bin/vgpud" --help
expectCode 1 "$tree/bin/vgpud" --run-dir "$dir/x" --device gpu
grep -q 'takes auto, cuda, emulated or emulated:N' "$dir/usage.log" || fail "no hint"
expectCode 1 "$tree/bin/vgpud" --run-dir "$dir/x" --device emulated:0
expectCode 2 "$tree/bin/vgpu-bench" --rounds 0
expectCode 2 "$tree/bin/vgpu-bench" --only no-such-case
expectCode 0 "$tree/bin/vgpu-bench" --list
