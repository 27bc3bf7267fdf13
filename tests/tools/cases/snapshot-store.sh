# Suspends to the store: by name, from two daemons, and only changes are written; unneeded chunks are freed.
export VGPU_STORE=$dir/store
startNode a
startNode b
startContents a one 24
packBytes() { du -s --block-size=1 "$VGPU_STORE/packs" | cut -f1; }
names() { ctl a snapshots ls --json | python3 -c 'import json, sys; print(*[s["snapshot"] for s in json.load(sys.stdin)])'; }

first=$(storedBytes ctl a suspend one)
[ "$first" -ge $((24 << 20)) ] || fail "the first suspend wrote $first bytes"
succeeds ctl b resume one
second=$(storedBytes ctl b suspend one)
[ "$second" -lt $((3 << 20)) ] || fail "nothing changed, and the second suspend wrote $second bytes"
succeeds ctl a resume one-2
tell one change changed
third=$(storedBytes ctl a suspend one --name third)
[ "$third" -ge $((2 << 20)) ] && [ "$third" -lt $((6 << 20)) ] || fail "2 MiB changed, and the third suspend wrote $third bytes"
[ "$(names)" = "one one-2 third" ] || fail "the store lists other snapshots: $(names)"
succeeds ctl a snapshots verify
succeeds ctl a snapshots show third
grep -q memory "$dir/succeeds.log" || fail "show does not say what it holds"
refused "cannot name a snapshot" ctl a snapshots show ../one
refused "there is no snapshot fourth" ctl a resume fourth
refused "has no snapshot fourth" ctl a snapshots rm fourth
refused "has a snapshot third already" ctl b suspend one --name third
touch -d "2 hours ago" "$VGPU_STORE/snapshots/third" "$VGPU_STORE/snapshots/third/manifest.json"  # as if the clock had been set back since
refused "whose program (pid [0-9]*) still exists" ctl b snapshots rm third

# Chunks that one snapshot needs stay when the others are removed.
succeeds ctl b resume third
succeeds ctl b snapshots rm one
succeeds ctl b snapshots rm one-2
before=$(packBytes)
succeeds ctl b snapshots gc
[ "$(packBytes)" -lt "$before" ] || fail "nothing was freed"
succeeds ctl b snapshots verify third
fourth=$(storedBytes ctl b suspend one --name fourth)
[ "$fourth" -lt $((3 << 20)) ] || fail "the collection has forgotten what third needs: $fourth bytes were written"
succeeds ctl a resume fourth
memoryIsRight one

# A directory outside of the store contains all chunks itself, and snapshot names only refer to the store.
succeeds ctl a suspend one --to "$dir/beside"
cp -r "$dir/beside" "$dir/elsewhere"
succeeds ctl b resume "$dir/elsewhere"
memoryIsRight one
refused "remove the snapshot with --force" ctl a snapshots rm fourth
succeeds ctl a snapshots rm fourth --force
endContents one
for name in $(names); do succeeds ctl a snapshots rm "$name"; done
succeeds ctl a snapshots gc
isEmpty "$VGPU_STORE/packs" || fail "$(packBytes) bytes are left of no snapshot"
