# `snapshots verify` and a resume name each file of a snapshot in a store that was altered, truncated, removed, swapped or replaced by an
# older one, and the program keeps waiting. The same for a snapshot of another format version, which only its own version resumes.
export VGPU_STORE=$dir/store
startNode a
startContents a one 4
succeeds ctl a suspend one --name before
succeeds ctl a resume before
tell one change changed
memoryIsRight one
succeeds ctl a suspend one --name good
good=$VGPU_STORE/snapshots/good before=$VGPU_STORE/snapshots/before
cp -r "$good" "$dir/whole"

# damaged PATTERN COMMAND...: after COMMAND, which runs in the snapshot, both must report PATTERN.
damaged() {
  local pattern=$1
  shift
  (cd "$good" && "$@") || fail "cannot damage the snapshot: $*"
  refused "$pattern" ctl a snapshots verify good
  refused "$pattern" ctl a resume good
  hasState a one suspended || fail "after $* the session is $(field a one state)"
  rm -r "$good"
  cp -r "$dir/whole" "$good"
}
flip() {
  python3 -c '
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[len(data) // 2] ^= 0x20
open(sys.argv[1], "wb").write(data)' "$1"
}
swap() { mv "$1" away && mv "$2" "$1" && mv away "$2"; }
for file in manifest.json objects chunks pending-calls; do
  damaged "file $file: \(checksum\|length\)" flip "$file"
  damaged "file $file: \(checksum\|length\)" truncate -s -1 "$file"
done
for file in objects chunks pending-calls output; do
  damaged "file $file: cannot be opened" rm "$file"
  damaged "file $file: cannot be opened" ln -sfT "$before/$file" "$file"
done
for file in objects chunks pending-calls; do damaged "file $file: \(checksum\|length\)" cp "$before/$file" "$file"; done
grow() { echo more >>"$1"; }
damaged "file output: length" grow output
damaged "file objects: length" swap objects pending-calls
damaged "file " cp "$before/manifest.json" manifest.json

# A format version that this build does not resume.
cp -r "$good" "$VGPU_STORE/snapshots/future"
"$tree/tests/tools/reseal" "$VGPU_STORE/snapshots/future/manifest.json" version 99 || fail "cannot forge a manifest"
refused "manifest.json: format version 99" ctl a snapshots verify future
flip "$VGPU_STORE/snapshots/future/pending-calls"
refused "file pending-calls: checksum" ctl a snapshots verify future
succeeds ctl a snapshots rm --force future

# Without its manifest it is not listed, but verify still reports it.
rm "$good/manifest.json"
refused "snapshot good cannot be resumed: .*file manifest.json" ctl a snapshots verify
refused "nothing is removed.*snapshots rm good" ctl a snapshots gc
refused "file manifest.json" ctl a resume good
cp "$dir/whole/manifest.json" "$good/manifest.json"

# Without its leases the users of a store are unknown.
mv "$VGPU_STORE/leases" "$dir/leases"
refused "leases is missing" ctl a snapshots verify
refused "leases is missing" ctl a resume good
mv "$dir/leases" "$VGPU_STORE/leases"
succeeds ctl a snapshots verify
succeeds ctl a resume good
memoryIsRight one
endContents one
