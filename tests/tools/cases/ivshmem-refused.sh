# Requests concerning virtual machines that are refused, with advice; nothing is lost by them.
mkdir "$dir/one"
memory=$dir/one/memory
daemonRefused() { refused "$1" timeout "$limit" "$tree/bin/vgpud" --run-dir "$dir/x" --device emulated --guest "$2"; }
for wrong in "$memory" one= "=$memory" "a/b=$memory" "one=$memory,12" "one=$memory,0MiB" "one=$memory,-1MiB" "one=$memory,2TiB"; do
  daemonRefused "takes NAME=FILE or NAME=FILE,SIZE" "$wrong"
done
daemonRefused "a power of two" "one=$memory,300MiB"
daemonRefused "at least 256 MiB" "one=$memory,128MiB"
rm -f "$memory"
daemonRefused "cannot be opened: $dir/none/memory" "one=$dir/none/memory"
daemonRefused "is not a regular file of this user" "one=/dev/null"
truncate -s 1000 "$dir/short"
daemonRefused "at least 256 MiB" "one=$dir/short"
[ "$(stat -c %s "$dir/short")" = 1000 ] || fail "a file that is refused was changed"
truncate -s 256M "$dir/foreign"
printf 'something' | dd of="$dir/foreign" conv=notrunc status=none
daemonRefused "vgpud has written no header to it" "one=$dir/foreign"

startNode a --guest "one=$memory,256MiB"
[ "$(stat -c %a%s "$memory")" = 600268435456 ] || fail "the file is not private, or of another size"
daemonRefused "is served by another vgpud" "one=$memory"
daemonRefused "has 268435456 bytes, not the 536870912" "one=$memory,512MiB"
run() { LD_PRELOAD=${VGPU_PROGRAM_PRELOAD:-} timeout "$limit" "$tree/bin/vgpuctl" --node "ivshmem:$1" run -- "$tree/tests/programs/vector-add" 1000; }
[ -x "$tree/tests/programs/vector-add" ] || skip "no program vector-add"
succeeds run "$memory"
refused "cannot be opened: $dir/one/none" run "$dir/one/none"
refused "cannot be opened: /sys/bus/pci/devices/0000:99:00.0/resource2" run 0000:99:00.0
refused "vgpud has written no header to it" run "$dir/foreign"
refused "has only 1000 bytes" run "$dir/short"
refused "memory that this machine shares with its host: only .vgpuctl run. can use it" "$tree/bin/vgpuctl" --node "ivshmem:$memory" ps
refused "name a virtual machine's memory with --guest NAME=FILE" "$tree/bin/vgpud" --run-dir "$dir/x" --device emulated --listen ivshmem:

# The memory is not served; a machine has another version; then it is served as before.
stopNode a
refused "no vgpud of the host serves the memory" run "$memory"
printf '\x63' | dd of="$memory" bs=1 seek=8 conv=notrunc status=none
refused "is of version 99\." run "$memory"
daemonRefused "Remove the file while its machine does not run" "one=$memory"
printf '\x02' | dd of="$memory" bs=1 seek=8 conv=notrunc status=none
startNode a --guest "one=$memory"
succeeds run "$memory"
stopNode a
