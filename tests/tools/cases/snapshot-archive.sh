# A snapshot as one file: exported from a store and imported into another one, also by a pipe; an altered, truncated or invalid file is
# refused by name and leaves nothing.
export VGPU_STORE=$dir/store
startNode a
startNode b
startContents a one 8
succeeds ctl a suspend one --name first
succeeds ctl a resume first
tell one change changed
succeeds ctl a suspend one --name second
archive=$dir/second.vgpu
packs() { find "$1/packs" -type f -printf '%f %s\n' | sort; }
names() { ctl a snapshots ls --json | python3 -c 'import json, sys; print(*[s["snapshot"] for s in json.load(sys.stdin)])'; }

succeeds ctl a snapshots export second "$archive"
[ "$(stat -c %a "$archive")" = 600 ] || fail "others can read the archive"
refused "cannot write $archive: File exists" ctl a snapshots export second "$archive"
refused "has no snapshot third" ctl a snapshots export third "$dir/third"
refused "No such file or directory" ctl a snapshots export second "$dir/no/such/place"
[ "$(ls "$dir" | grep -c second)" = 1 ] || fail "an export that was refused left something: $(ls "$dir")"
ctl a snapshots export second - >"$dir/piped" || fail "it is not exported to a pipe"
cmp "$archive" "$dir/piped" || fail "the archive is another one by pipe"

# Chunks that the store has are not written again; the default name is the session's, and a number.
before=$(packs "$VGPU_STORE")
[ "$(storedBytes ctl a snapshots import "$archive" again)" = 0 ] || fail "chunks were written that the store has"
[ "$(packs "$VGPU_STORE")" = "$before" ] || fail "the store has other packs: $(packs "$VGPU_STORE")"
refused "has a snapshot again already" ctl a snapshots import "$archive" again
for _ in 1 2; do succeeds ctl a snapshots import "$archive"; done
[ "$(names)" = "again first one one-2 second" ] || fail "the store lists other snapshots: $(names)"
succeeds ctl a snapshots verify
for name in again one one-2; do succeeds ctl a snapshots rm --force "$name"; done

# Into another store, with other digests.
export VGPU_STORE=$dir/other
ctl a snapshots import - <"$archive" >"$dir/import.log" 2>&1 || fail "it is not imported from a pipe"
succeeds ctl a snapshots verify
[ "$(storedBytes ctl a snapshots import "$archive" twice)" = 0 ] || fail "the second import wrote chunks again"
ctl a snapshots export twice - | ctl a snapshots import - third >"$dir/import.log" 2>&1 || fail "it is not exported again"
succeeds ctl b resume third
memoryIsRight one
succeeds ctl b suspend one --name fourth
succeeds ctl a snapshots verify
for name in one twice third; do succeeds ctl a snapshots rm --force "$name"; done
succeeds ctl a snapshots gc

# notImported PATTERN: an import of $dir/bad must fail with PATTERN and leave the store unchanged.
notImported() {
  local before
  before=$(packs "$VGPU_STORE")
  refused "$1" ctl a snapshots import "$dir/bad" bad
  isGone "$VGPU_STORE/snapshots/bad" || fail "part of a snapshot is left after: $1"
  [ "$(packs "$VGPU_STORE")" = "$before" ] || fail "packs are left after: $1"
}
# forge EXPRESSION: makes $dir/bad from the archive's bytes `d`; its manifest ends at `m`, its chunks begin at `c`.
forge() {
  python3 -c '
import struct, subprocess, sys
d = bytearray(open(sys.argv[1], "rb").read())
m = c = 24 + struct.unpack_from("<Q", d, 16)[0]
for _ in range(4): c += 8 + struct.unpack_from("<Q", d, c)[0]
def flip(at):
    d[at] ^= 0x20
    return d
def manifest(*words):
    open(sys.argv[2] + ".manifest", "wb").write(d[24:m])
    subprocess.run([sys.argv[4], sys.argv[2] + ".manifest", *words], check=True)
    text = open(sys.argv[2] + ".manifest", "rb").read()
    return d[:16] + struct.pack("<Q", len(text)) + text + d[m:]
open(sys.argv[2], "wb").write(eval(sys.argv[3]))' "$archive" "$dir/bad" "$1" "$tree/tests/tools/reseal" || fail "cannot forge: $1"
}
bad() {
  forge "$1"
  notImported "$2"
}
bad 'b""' "$dir/bad: it is not an exported snapshot"
bad 'b"PK\3\4" + d' "it is not an exported snapshot"
bad 'flip(8)' "format version 33, and this build"
bad 'flip(13)' "its head was altered"
bad 'flip(20)' "manifest.json: length"
bad 'flip(60)' "manifest.json: checksum"
bad 'flip(m - 5)' "manifest.json: checksum"
bad 'manifest("version", "99")' "manifest.json: format version 99, and this build"
bad 'flip(m)' "objects: length"
bad 'flip(m + 100)' "objects: checksum"
bad 'flip(c - 1)' "checksum\|length"
bad 'flip(c)' "chunk [01]: its \(form\|digest\)"
bad 'flip(c + 4)' "chunk 0: its form"
bad 'flip(c + 5000)' "chunk 0: its digest does not match"
bad 'flip(len(d) - 1)' "its digest does not match"
bad 'd + b"x"' "there is data after its end"
for place in 15 20 'm - 1' m 'm + 7' 'c - 1' c 'c + 3' '(c + len(d)) // 2' 'len(d) - 1'; do bad "d[:$place]" "truncated\|not an exported snapshot"; done
refused "No such file" ctl a snapshots import "$dir/nothing" bad
refused "Is a directory" ctl a snapshots import "$dir" bad

# Interrupted while it waits for the rest.
interrupted() {
  mkfifo "$dir/slow"
  "$tree/bin/vgpuctl" snapshots import "$dir/slow" bad >"$dir/interrupted.log" 2>&1 & import=$!
  exec {slow}>"$dir/slow"
  head -c 6000000 "$archive" >&"$slow"
  kill -"$1" "$import"
  wait "$import" && fail "an import ended well after SIG$1"
  exec {slow}>&-
  rm "$dir/slow"
}
before=$(packs "$VGPU_STORE")
interrupted TERM
grep -q "interrupted by SIGTERM" "$dir/interrupted.log" || fail "it does not say why it ended"
isGone "$VGPU_STORE/snapshots/bad" || fail "part of a snapshot is left"
[ "$(packs "$VGPU_STORE")" = "$before" ] || fail "packs are left"
interrupted KILL
succeeds ctl a snapshots gc
isGone "$VGPU_STORE/snapshots/bad" || fail "part of a snapshot that was killed is left"
[ "$(packs "$VGPU_STORE")" = "$before" ] || fail "packs of an import that was killed are left"
for delay in 0.01 0.03 0.1 0.3; do  # the file is complete or does not exist
  timeout -s KILL "$delay" "$tree/bin/vgpuctl" snapshots export fourth "$dir/killed" >"$dir/killed.log" 2>&1
  [ "$(ls "$dir" | grep -c '^killed')" -le 2 ] || fail "an export that was killed left something: $(ls "$dir")"
  isGone "$dir/killed" || succeeds ctl a snapshots import "$dir/killed" "whole-$delay"
  rm -f "$dir/killed"
done
succeeds ctl a snapshots verify
succeeds ctl a resume fourth
memoryIsRight one
endContents one
