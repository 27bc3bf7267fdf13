# A program that runs on a GPU without vgpu: the calls to NVIDIA's driver and their order, and whatever fails, the program goes on. The
# driver is a double (tests/tools/checkpoint-double.c), and the program a counter with a child.
# shellcheck source=../native-program.sh
source "$(dirname "${BASH_SOURCE[0]}")/../native-program.sh"

start
native suspend "$root" --native --to "$dir/saved" >"$dir/first.log" 2>&1
says first CRIU && skip "$(cat "$dir/first.log")"
says first "is suspended to $dir/saved: 2 processes, of which 2 had memory of a GPU" || fail "it was not suspended"
says first "NVIDIA's driver (CUDA 13.0)" || fail "it does not say whose guarantees they are"
waitUntil ended "$root"
asked "lock $root checkpoint $root lock $child checkpoint $child "
count=$(countOf "$dir/count") childCount=$(countOf "$dir/count.child")
: >"$double/log"

# Errors in the folder are found before a process is restored.
cp -r "$dir/saved" "$dir/other"
printf x >>"$(find "$dir/other/process" -name 'pages-*.img' | head -n 1)"
refused "file pages-.*: length" native resume "$dir/other"
sed 's/"version": 1/"version": 2/' "$dir/saved/native.json" >"$dir/other/native.json"
refused "format version 2, and this build reads version 1" native resume "$dir/other"
sed "s/$root/-7/" "$dir/saved/native.json" >"$dir/other/native.json"
refused "field users is invalid" native resume "$dir/other"
refused "--device-map is for sessions" native resume "$dir/saved" --device-map 0=0
refused "no NVIDIA driver" "$tree/bin/vgpuctl" resume "$dir/saved"
asked ""

# The driver fails: none of the processes is left, and the snapshot is unchanged.
touch "$double/fail-unlock"
refused "NVIDIA's driver cannot release the CUDA calls of process $root .*: CUDA_ERROR_NOT_READY" native resume "$dir/saved"
waitUntil ended "$root"
waitUntil ended "$child"
rm "$double/fail-unlock" "$double/log"
echo 2 >"$double/$root"

succeeds native resume "$dir/saved"
asked "restore $root unlock $root restore $child unlock $child "
rm -r "$dir/saved"
waitUntil hasCounted "$dir/count" "$count"
waitUntil hasCounted "$dir/count.child" "$childCount"
goesOn

# Whatever fails, the program goes on.
touch "$double/fail-checkpoint"
refused "cannot save the GPU memory of process $root .*. The program goes on" native suspend "pid:$root" --native --to "$dir/saved"
goesOn
rm "$double/fail-checkpoint"
touch "$dir/saved"
refused "cannot make the folder $dir/saved" native suspend "$root" --native --to "$dir/saved"
rm "$dir/saved"
goesOn
stopProcess "$root"
refused "is stopped, and NVIDIA's driver needs it running" native suspend "$root" --native --to "$dir/saved"
kill -CONT "$root"
echo 1 >"$double/$child"
refused "as locked already" native suspend "$root" --native --to "$dir/saved"
rm "$double/$child" "$double/$root"
refused "nor a child of it uses a GPU of this machine" native suspend "$root" --native --to "$dir/saved"
refused "there is no NVIDIA driver" "$tree/bin/vgpuctl" suspend "$root" --native --to "$dir/saved"
refused "is not a process id" native suspend app --native --to "$dir/saved"
native suspend "$root" --native >"$dir/usage.log" 2>&1
[ $? = 2 ] && says usage "give --to DIRECTORY" || fail "a store was taken for a native program"
kill -KILL "$root" "$child"

start connected
refused "process $root cannot be saved: .*connect.* The program goes on" native suspend "$root" --native --to "$dir/saved"
goesOn
kill -KILL "$root" "$child"
