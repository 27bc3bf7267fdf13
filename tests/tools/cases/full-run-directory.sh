# If the disk of the run directory is full, a new session fails; existing sessions go on, and no files are left.
mkdir -m 700 "$dir/a"
mount -t tmpfs -o size=1m,mode=700 none "$dir/a" 2>/dev/null || skip "no permission to mount a small disk"
startNode a
startDouble a one
filler() { dd if=/dev/zero of="$dir/a/filler" bs=4k 2>/dev/null; }
filler
VGPU_NODE=$dir/a "$doubleProgram" two >"$dir/two.log" 2>&1 && fail "a session was opened on a full disk"
says two 'the disk is full' || fail "the program was not told that the disk is full"
isAlone() { [ "$(ls "$dir/a/sessions" | wc -l)" = 1 ]; }
waitUntil isAlone
hasState a one running || fail "the other session does not run"
succeeds ctl a suspend one --to "$dir/on-full-disk"
succeeds ctl a resume "$dir/on-full-disk"
rm "$dir/a/filler"
startDouble a two
stillWorks a one
stillWorks a two
