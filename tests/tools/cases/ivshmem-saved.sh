# A machine is saved with its memory while the host continues with its side of the mailbox; then the machine is restored.
guests=$(dirname "$0")/..
one=$(guestFolder one)
memory=$one/memory
"$guests/in-guest" "$one" true || skip "no namespaces can be made here"
[ -x "$tree/tests/programs/contents" ] || skip "no program contents"
startNode a --guest "one=$memory,256MiB"
startNode b
mkfifo "$dir/kept.in"
"$guests/in-guest" "$one" "$tree/bin/vgpuctl" --node "ivshmem:$memory" run --name kept -- \
  "$tree/tests/programs/contents" --serve random 16 <"$dir/kept.in" >"$dir/kept.log" 2>&1 &
runner[kept]=$!
exec {file}>"$dir/kept.in"
commands[kept]=$file
waitUntil says kept ready
memoryIsRight kept
refused 'serves no guest "two"' ctl a attach two

# All processes of the machine are stopped and continued, as its processors would be.
inMachine() {
  local pid
  for pid in $(processesOfRun); do
    [ "$(readlink "/proc/$pid/ns/pid")" = "$(readlink /proc/self/ns/pid)" ] || echo "$pid"
  done
}
# save copies a file's present contents; bringBack restores them in place, so that existing mappings see them.
save() { cp --sparse=always "$1" "$2"; }
bringBack() {
  python3 - "$1" "$2" <<'PY'
import sys
piece = 1 << 16
with open(sys.argv[1], "rb") as saved, open(sys.argv[2], "r+b", buffering=0) as memory:
    at = 0
    while was := saved.read(piece):
        memory.seek(at)
        if memory.read(piece) != was:
            memory.seek(at)
            memory.write(was)
        at += len(was)
PY
}

for round in 1 2; do
  succeeds ctl a suspend kept --to "$dir/snapshot$round"
  stopProcess $(inMachine)
  save "$memory" "$dir/saved"
  succeeds ctl a attach one  # which writes to the memory
  ! cmp -s "$dir/saved" "$memory" || fail "the host has written nothing into the machine's memory"
  bringBack "$dir/saved" "$memory"
  succeeds ctl a attach one
  kill -CONT $(inMachine)
  if [ "$round" = 1 ]; then succeeds ctl a resume "$dir/snapshot1"; else succeeds ctl b resume "$dir/snapshot2"; fi
  memoryIsRight kept
done

# `attach` also works for a running machine.
succeeds ctl a attach one
memoryIsRight kept
endContents kept
stopNode a
stopNode b
waitUntil noRelays
