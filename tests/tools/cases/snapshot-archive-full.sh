# If the disk fills in any phase of an export or an import, the command gives the reason, leaves no files, and existing files stay intact.
mkdir "$dir/disk"
mount -t tmpfs -o size=16m vgpu-test "$dir/disk" 2>/dev/null || skip "no permission to mount a small disk"
export VGPU_STORE=$dir/store
startNode a
startContents a one 6
succeeds ctl a suspend one --name kept
succeeds ctl a snapshots export kept "$dir/archive"
archived=$((($(stat -c %s "$dir/archive") + 4095) / 4096))
used() { du -s --block-size=4096 "$dir/disk" | cut -f1; }
# leave PAGES: fills the disk except for so many pages.
leave() {
  rm -f "$dir/disk/filler"
  head -c $((((16 << 8) - $(used) - $1) * 4096)) /dev/zero >"$dir/disk/filler" 2>/dev/null
}

for left in 0 1 40 $((archived / 2)) $((archived - 1)); do
  leave "$left"
  refused "cannot write $dir/disk/out: No space left on device" ctl a snapshots export kept "$dir/disk/out"
  [ "$(ls "$dir/disk")" = filler ] || fail "with $left pages left part of an export stays: $(ls "$dir/disk")"
done
rm "$dir/disk/filler"

export VGPU_STORE=$dir/disk/store
succeeds ctl a snapshots ls
for left in 0 1 3 5 8 20 700 $((archived - 2)) "$archived" $((archived + 3)) $((archived + 6)); do
  leave "$left"
  if ctl a snapshots import "$dir/archive" "left-$left" >"$dir/import.log" 2>&1; then
    rm -f "$dir/disk/filler"
    succeeds ctl a snapshots verify
    succeeds ctl a snapshots rm --force "left-$left"
  else
    rm -f "$dir/disk/filler"
    grep -q "No space left on device" "$dir/import.log" || fail "with $left pages left: another reason"
    isGone "$VGPU_STORE/snapshots/left-$left" || fail "with $left pages left part of a snapshot stays"
  fi
  succeeds ctl a snapshots gc
  isEmpty "$VGPU_STORE/packs" || fail "with $left pages left packs stay"
done
succeeds ctl a snapshots import "$dir/archive" whole
succeeds ctl a resume whole
memoryIsRight one
endContents one
