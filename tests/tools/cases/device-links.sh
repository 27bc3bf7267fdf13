# A program sees the links between its GPUs as the NVML of their host reports them; without NVML it sees none.
program=$tree/tests/programs/nvml
[ -x "$program" ] || skip "no $program"
VGPU_EMULATED=devices=2 LD_LIBRARY_PATH=$tree/tests/tools/nvml-double startNode linked
VGPU_EMULATED=devices=2 startNode apart
succeeds ctl linked run --gpus 2 -- "$program" linked
succeeds ctl apart run --gpus 2 -- "$program"

# On another node it sees that node's links.
VGPU_PAUSE_FILE=$dir/pause ctl linked run --gpus 2 -- "$program" linked moves >"$dir/program.log" 2>&1 &
runner=$!
waitUntil test -e "$dir/pause.reached"
succeeds ctl linked suspend "$(cat "$dir/pause.reached")" --to "$dir/snapshot"
succeeds ctl apart resume "$dir/snapshot"
: >"$dir/pause.go"
wait "$runner" || fail "the program returned $?: $(cat "$dir/program.log")"
