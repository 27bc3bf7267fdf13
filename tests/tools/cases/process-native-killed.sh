# vgpuctl is killed, or ended, between any two steps of a native program's suspend: the program goes on, or is restored from a complete
# snapshot, and can be suspended again.
# shellcheck source=../native-program.sh
source "$(dirname "${BASH_SOURCE[0]}")/../native-program.sh"
start
native suspend "$root" --native --to "$dir/saved" >"$dir/first.log" 2>&1
says first CRIU && skip "$(cat "$dir/first.log")"
rm -rf "$dir/saved"
start
# killedAt POINT: a suspend must be killed at this fault point.
killedAt() {
  local code=0
  VGPU_FAULT_POINT=$1 native suspend "$root" --native --to "$dir/saved" >"$dir/killed.log" 2>&1 || code=$?
  [ "$code" = 137 ] || fail "returned $code instead of being killed at $1"
}
# suspends NAME: starts a suspend in the background, with process id $suspend and its output in NAME.log.
suspends() {
  LD_LIBRARY_PATH=$driverFolder VGPU_CHECKPOINT_DOUBLE=$double "$tree/bin/vgpuctl" suspend "$root" --native --to "$dir/saved" >"$dir/$1.log" 2>&1 &
  suspend=$!
}
for point in native.begun native.taken native.taken:kill:2 native.saved; do
  killedAt "$point"
  succeeds native resume "$dir/saved"
  goesOn
done

# Another suspend first lets the program go on; one to another folder is refused with advice.
killedAt native.saved
refused "as checkpointed already: .* was killed, .vgpuctl resume DIRECTORY. lets the program go on" \
  native suspend "$root" --native --to "$dir/other"
succeeds native suspend "$root" --native --to "$dir/saved"
waitUntil ended "$root"
succeeds native resume "$dir/saved"
rm -r "$dir/saved"
goesOn

# A complete snapshot stays, whether its processes go on or some of them have ended.
killedAt native.named
succeeds native resume "$dir/saved"
counts "$dir/count"
[ -e "$dir/saved/native.json" ] && [ ! -e "$dir/saved/native-held.json" ] || fail "the snapshot is not as if its processes had been ended"
rm -r "$dir/saved"
goesOn
killedAt native.named
kill -KILL "$child"
succeeds native resume "$dir/saved"
rm -r "$dir/saved"
goesOn
killedAt native.ended
waitUntil ended "$root"
succeeds native resume "$dir/saved"
rm -r "$dir/saved"
goesOn

# The file that names the processes is damaged, or names other processes with the same ids.
killedAt native.taken
cp "$dir/saved/native-held.json" "$dir/held.json"
sed -i 's/"version": 1/"version": 2/' "$dir/saved/native-held.json"
refused "file native-held.json of $dir/saved: format version 2, and this build reads version 1" native resume "$dir/saved"
sed 's/"pid"/"pit"/' "$dir/held.json" >"$dir/saved/native-held.json"
refused "field root is invalid" native resume "$dir/saved"
cp "$dir/held.json" "$dir/saved"
mv "$dir/saved/held.json" "$dir/saved/native-held.json"
succeeds native resume "$dir/saved"
goesOn

# CRIU is still running after the vgpuctl that started it was killed.
found=$(criuFile)
printf '#!/bin/bash\n[ "$1" != dump ] || { touch "%s"; until [ -e "%s" ]; do sleep 0.05; done; }\nexec "%s" "$@"\n' \
  "$dir/dumping" "$dir/go" "$found" >"$dir/criu"
chmod +x "$dir/criu"
VGPU_CRIU=$dir/criu suspends killed
waitUntil test -e "$dir/dumping"
kill -KILL "$suspend"
refused "a suspend to $dir/saved is in progress, or its CRIU still runs" native resume "$dir/saved"
touch "$dir/go"
resumed() { native resume "$dir/saved" >"$dir/resumed.log" 2>&1; }
waitUntil resumed
goesOn

for signal in HUP TERM; do
  VGPU_FAULT_POINT=native.taken:stop suspends signal
  waitUntil stands "$suspend"
  kill "-$signal" "$suspend"
  kill -CONT "$suspend"
  wait "$suspend" && fail "a suspend that was told to end succeeded"
  says signal "interrupted by SIG$signal; what was written has been removed. The program goes on" || fail "it does not say what ended it"
  goesOn
done
kill -KILL "$root" "$child"
