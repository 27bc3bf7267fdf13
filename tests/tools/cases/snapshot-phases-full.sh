# A disk that fills in the phases that snapshot-store-full.sh does not cover: while the program goes on, while chunks in memory are written
# to the store, as the index grows, and while the store is collected. The program's results are right, existing snapshots are intact, and
# the message gives the bytes needed, the free space, and advice.
mkdir "$dir/disk"
mount -t tmpfs -o size=24m vgpu-test "$dir/disk" 2>/dev/null || skip "no permission to mount a small disk"
export VGPU_STORE=$dir/disk/store
startNode a --pinned 48MiB
startContents a one 8
succeeds ctl a suspend one --name before
succeeds ctl a resume before
used() { du -s --block-size=4096 "$dir/disk" | cut -f1; }
# leave PAGES: fills the disk except for so many pages.
leave() {
  rm -f "$dir/disk/filler"
  head -c $((((24 << 8) - $(used) - $1) * 4096)) /dev/zero >"$dir/disk/filler" 2>/dev/null
}
reason="No space left on device: .* free there. Free disk space"
isSaid() { grep -q "$reason" "$dir/$1.log" || fail "with $left pages left $1 says something else: $(cat "$dir/$1.log")"; }
# wasRefused NAME: requires that nothing of the snapshot is left, and that the program runs.
wasRefused() {
  hasState a one running || fail "with $left pages left the session is $(field a one state)"
  waitUntil isGone "$VGPU_STORE/snapshots/$1"  # a moment later
}

for left in 0 3 200 513 515 517 530; do
  tell one change changed
  leave "$left"
  ctl a snapshot one --name live >"$dir/live.log" 2>&1 && code=0 || code=$?
  rm -f "$dir/disk/filler"
  if [ "$code" = 0 ]; then
    succeeds ctl a snapshots rm --force live
  else
    isSaid live
    wasRefused live
  fi
  hasState a one running || fail "with $left pages left the session is $(field a one state)"
  succeeds ctl a snapshots gc
done
memoryIsRight one

place() {
  ctl a snapshots ls --json | python3 -c '
import json, sys
print(*[s["place"] for s in json.load(sys.stdin) if s["snapshot"] == sys.argv[1]])' "$1"
}
isWrittenOrNot() { says a "snapshots/$1 .*it could not be written" || [ "$(place "$1")" = disk ]; }
stayed=0
for left in 0 3 8 200 515 517 530; do
  tell one change changed
  leave "$left"
  if ctl a suspend one --background --name "back-$left" >"$dir/back.log" 2>&1; then
    waitUntil isWrittenOrNot "back-$left"
    rm -f "$dir/disk/filler"
    if [ "$(place "back-$left")" = memory ]; then
      stayed=$((stayed + 1))
      grep "snapshots/back-$left " "$dir/a.log" | grep -q "$reason" || fail "with $left pages left the daemon says something else"
      resumeFromMemory a "back-$left"
    else
      succeeds ctl a resume "back-$left"
      succeeds ctl a snapshots rm --force "back-$left"
    fi
    memoryIsRight one
  else
    rm -f "$dir/disk/filler"
    isSaid back
    wasRefused "back-$left"
  fi
  succeeds ctl a snapshots gc
done
[ "$stayed" -gt 0 ] || fail "no background write met a full disk"

# A new store, whose index grows with its first rows: there is room for the chunks, but not for the rows.
indexed=0
for more in 4 8 9 10 11 12 13 14 15 16 20; do
  left=$((8 << 8 | more))
  VGPU_STORE=$dir/disk/new succeeds ctl a snapshots ls
  leave "$left"
  VGPU_STORE=$dir/disk/new ctl a suspend one --name rows >"$dir/rows.log" 2>&1 && code=0 || code=$?
  rm -f "$dir/disk/filler"
  if [ "$code" = 0 ]; then
    VGPU_STORE=$dir/disk/new succeeds ctl a resume rows
  else
    isSaid rows
    hasState a one running || fail "with $left pages left the session is $(field a one state)"
    waitUntil isGone "$dir/disk/new/snapshots/rows"
    if grep -q "the index of chunks" "$dir/rows.log"; then
      isEmpty "$dir/disk/new/packs" || fail "with $left pages left packs stay that no index has"
      indexed=$((indexed + 1))
    fi
  fi
  rm -r "$dir/disk/new"
done
[ "$indexed" -gt 0 ] || fail "no index met a full disk"
memoryIsRight one

# Unneeded chunks can be freed although nothing can be written.
tell one change changed
succeeds ctl a suspend one --name useless
succeeds ctl a resume useless
succeeds ctl a snapshots rm useless --force
leave 0
freed=$(ctl a snapshots gc --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["freedBytes"])')
[ "$freed" -ge $((2 << 20)) ] || fail "on a full disk $freed bytes were freed"
rm "$dir/disk/filler"
succeeds ctl a snapshots gc
succeeds ctl a snapshots verify
memoryIsRight one
succeeds ctl a suspend one --name after
succeeds ctl a resume after
memoryIsRight one
endContents one
