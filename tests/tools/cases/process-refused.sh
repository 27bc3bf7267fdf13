# Whatever prevents a process from being saved is named before the program is affected, or else the program goes on: it runs as before, and
# no part of a snapshot is left.
[ -z "${VGPU_PROGRAM_PRELOAD:-}" ] || skip "the shell of a fake CRIU crashes with the runtime of thread sanitizer"
startNode a
startContents a kept 1
pid=$(field a kept pid)
save() { ctl a suspend kept --process --to "$dir/snapshot"; }
untouched() {
  isGone "$dir/snapshot" || fail "something of a snapshot is left: $(ls -A "$dir/snapshot")"
  hasState a kept running || fail "the session is $(field a kept state)"
  memoryIsRight kept
}
# fakeCriu NAME VERSION ACTION: makes a CRIU that reports VERSION and executes ACTION.
fakeCriu() {
  printf '#!/bin/bash\n[ "$1" = --version ] && { echo "Version: %s"; exit 0; }\n%s\n' "$2" "$3" >"$dir/$1"
  chmod +x "$dir/$1"
}
VGPU_CRIU=$dir/none refused "VGPU_CRIU names $dir/none, which is not an executable file" save
untouched
fakeCriu old 3.17 'exit 0'
VGPU_CRIU=$dir/old refused "is CRIU 3.17, but version 4 or newer is needed: .tools/setup. builds it" save
fakeCriu nothing x 'exit 0'
VGPU_CRIU=$dir/nothing refused "is not CRIU: it does not print its version" save
fakeCriu unable 4.9 'echo "Error (criu/cr-check.c:1): the kernel has no pagemap"; exit 1'
VGPU_CRIU=$dir/unable refused "does not work here: the kernel has no pagemap" save
untouched

# CRIU fails, or the disk is full, after the GPU was suspended.
while_log='for ((i = 1; i <= $#; ++i)); do [ "${!i}" = --work-dir ] && { j=$((i + 1)); work=${!j}; }; done; [ "$1" = dump ] || exit 0'
fakeCriu failing 4.9 "$while_log; echo '(00.1) Error (criu/mem.c:1): Can not write pages: No space left on device' >\$work/log; exit 1"
VGPU_CRIU=$dir/failing refused "CRIU 4.9 cannot save process $pid: Can not write pages: No space left on device. Nothing of the snapshot is left, and the program goes on" save
untouched
mkdir "$dir/snapshot"
VGPU_CRIU=$dir/failing refused "No space left" save
isEmpty "$dir/snapshot" || fail "something is left in the directory that was there"
rmdir "$dir/snapshot"

needCriu a
refused "name the node by its unix socket" timeout "$limit" "$tree/bin/vgpuctl" --node tcp:127.0.0.1:1 suspend kept --process --to "$dir/snapshot"
endContents kept

# Resources of a process that cannot be saved: the program is started with them.
startWith() {
  startContents a "$1" 1
  refused "process [0-9]* (.*contents) cannot be saved: $2. It goes on" ctl a suspend "$1" --process --to "$dir/snapshot"
  isGone "$dir/snapshot" || fail "something of a snapshot is left"
  memoryIsRight "$1"
  endContents "$1"
}
exec {foreign}> >(sleep 1000)
startWith piped "its descriptor $foreign is an end of a pipe whose other end belongs to another process"
exec {foreign}>&-
if [ -r /dev/kvm ]; then
  exec {device}</dev/kvm
  startWith device "its descriptor $device is /dev/kvm"
  exec {device}<&-
fi
stopNode a
