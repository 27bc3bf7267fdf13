# A store on a disk that fills in any phase of a suspend: the program goes on, and earlier snapshots stay intact.
mkdir "$dir/disk"
mount -t tmpfs -o size=24m vgpu-test "$dir/disk" 2>/dev/null || skip "no permission to mount a small disk"
export VGPU_STORE=$dir/disk/store
startNode a
startContents a one 8
succeeds ctl a suspend one --name before
succeeds ctl a resume before
used() { du -s --block-size=4096 "$dir/disk" | cut -f1; }
whole=$((24 << 8))

# With so many pages left: none for the first file; too few for chunks; too few for index, lists or manifest.
for left in 0 1 4 200 510 512 513 514 515 516 517 518 519 530; do
  tell one change changed
  rm -f "$dir/disk/filler"
  head -c $(((whole - $(used) - left) * 4096)) /dev/zero >"$dir/disk/filler" 2>/dev/null
  ctl a suspend one --name "left-$left" >"$dir/suspend.log" 2>&1 && code=0 || code=$?
  rm -f "$dir/disk/filler"
  if [ "$code" = 0 ]; then
    succeeds ctl a resume "left-$left"
    succeeds ctl a snapshots rm --force "left-$left"
  else
    grep -q "No space left on device" "$dir/suspend.log" || fail "with $left pages left: another reason"
    hasState a one running || fail "with $left pages left the session is $(field a one state)"
    waitUntil isGone "$VGPU_STORE/snapshots/left-$left"  # a moment later
  fi
  succeeds ctl a snapshots gc
done
succeeds ctl a snapshots verify
memoryIsRight one
succeeds ctl a suspend one --name after
succeeds ctl a resume after
memoryIsRight one
endContents one
