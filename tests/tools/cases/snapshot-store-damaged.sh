# A resume finds and names each part of a store that was altered, truncated, swapped or replaced by an older one; the program keeps waiting.
export VGPU_STORE=$dir/store
startNode a
startContents a one 8
succeeds ctl a suspend one --name before
succeeds ctl a resume before
cp -r "$VGPU_STORE" "$dir/older"
tell one change changed
succeeds ctl a suspend one --name good
cp -r "$VGPU_STORE" "$dir/whole"

# damaged PATTERN COMMAND...: after COMMAND, which runs in the store, a resume and `snapshots verify` must report PATTERN.
damaged() {
  local pattern=$1
  shift
  (cd "$VGPU_STORE" && "$@") || fail "cannot damage the store: $*"
  refused "$pattern" ctl a resume good
  hasState a one suspended || fail "after $* the session is $(field a one state)"
  refused "$pattern" ctl a snapshots verify good
  rm -r "$VGPU_STORE"
  cp -r "$dir/whole" "$VGPU_STORE"
}
flip() {
  python3 -c '
import os, sys
data = bytearray(open(sys.argv[1], "rb").read())
data[min(int(len(data) * float(sys.argv[2])), len(data) - 1)] ^= 0x20
open(sys.argv[1], "wb").write(data)' "$@"
}
largest=$(cd "$VGPU_STORE/packs" && ls -S | head -n 1)
second=$(cd "$VGPU_STORE/packs" && ls -S | sed -n 2p)
swapPacks() { mv "packs/$largest" away && mv "packs/$second" "packs/$largest" && mv away "packs/$second"; }
for place in 0 1; do damaged "$largest.*digest does not match" flip "packs/$largest" "$place"; done
damaged "$largest.*truncated" truncate -s -1 "packs/$largest"
damaged "$largest.*removed or truncated" rm "packs/$largest"
damaged "packs/.*\(digest does not match\|truncated\)" swapPacks
damaged "index.*was truncated" truncate -s -4096 index/data.mdb
damaged "its index has no chunk" cp "$dir/older/index/data.mdb" index/data.mdb
damaged "its index has no chunk" rm -r index
damaged "format was altered or damaged" truncate -s -1 format
damaged "its format has version" flip format 0.3
damaged "its file format is missing" rm format
damaged "chunks" flip snapshots/good/chunks 0.5
damaged "chunks" cp snapshots/before/chunks snapshots/good/chunks
damaged "manifest.json" flip snapshots/good/manifest.json 0.5

# LMDB trusts its pages: if any byte of their headers is altered, the separate process that reads them ends, and not vgpuctl or the worker.
# That process also reads first if a directory is given by its path in the store.
startContents a two 8
damage="the index of the store of snapshots .* is damaged"
byPath() {
  local stored=$VGPU_STORE/snapshots
  refused "$damage" ctl a suspend two --to "$stored/by-path"
  refused "$damage" ctl a snapshot two --to "$stored/by-path"
  refused "$damage" ctl a resume "$stored/good"
  refused "$damage" ctl a snapshots verify "$stored/good"
  hasState a two running || fail "with a damaged index the program is $(field a two state)"
  hasState a one suspended || fail "with a damaged index the session is $(field a one state)"
}
isTried=
pages=$(($(stat -c %s "$VGPU_STORE/index/data.mdb") / 4096))
for ((page = 0; page < pages; ++page)); do
  for byte in 12 16; do
    python3 -c '
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[int(sys.argv[2])] ^= 0x10
open(sys.argv[1], "wb").write(data)' "$VGPU_STORE/index/data.mdb" $((page * 4096 + byte))
    code=0
    ctl a snapshots verify >"$dir/verify.log" 2>&1 || code=$?
    [ "$code" -le 1 ] || fail "byte $byte of page $page ended vgpuctl with code $code"
    if [ -z "$isTried" ] && grep -q "$damage" "$dir/verify.log"; then
      byPath
      isTried=yes
    fi
    cp "$dir/whole/index/data.mdb" "$VGPU_STORE/index/data.mdb"
  done
done
[ -n "$isTried" ] || fail "no altered page ended the process that reads them"
succeeds ctl a snapshots verify
memoryIsRight two
endContents two

# A chunk that a snapshot might need is never collected.
rm -r "$VGPU_STORE/index"
refused "nothing is removed" ctl a snapshots gc
rm -r "$VGPU_STORE"
cp -r "$dir/whole" "$VGPU_STORE"
flip "$VGPU_STORE/snapshots/before/chunks" 0.5
refused "nothing is removed.*snapshots rm before" ctl a snapshots gc
succeeds ctl a snapshots rm before
succeeds ctl a snapshots gc

# A snapshot cannot be resumed beside its store, nor from another store.
cp -r "$VGPU_STORE/snapshots/good" "$dir/beside"
refused "its directory is not in a store" ctl a resume "$dir/beside"
VGPU_STORE=$dir/another succeeds ctl a snapshots ls
cp -r "$VGPU_STORE/snapshots/good" "$dir/another/snapshots/good"
refused "digestKey: it belongs to another store" ctl a resume "$dir/another/snapshots/good"
succeeds ctl a resume good
memoryIsRight one
endContents one
