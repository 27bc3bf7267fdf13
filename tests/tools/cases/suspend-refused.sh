# Too little room, no permission, a directory that is not empty: reported before the program is stopped, or undone.
startNode a
startDouble a one
mkdir "$dir/used" && touch "$dir/used/file" "$dir/plain"
refused "it is not empty" ctl a suspend one --to "$dir/used"
refused "it is not a directory" ctl a suspend one --to "$dir/plain"
refused "No such file or directory" ctl a suspend one --to "$dir/no/such/place"
[ -e "$dir/used/file" ] || fail "a refused suspend removed a file"
says one 'gate closed' && fail "the program was stopped for nothing"
stillWorks a one

# Files that a killed save left are replaced by the next one.
mkdir "$dir/left" && touch "$dir/left/manifest.json.new" "$dir/left/chunks" "$dir/left/pack-00"
succeeds ctl a suspend one --to "$dir/left"

# Nor is it suspended during a resume: the worker that is to have it is stopped.
oneWaits() {
  worker=$(ctl a ps --workers --json | python3 -c '
import json, sys
print(*[w["pid"] for w in json.load(sys.stdin) if w["session"] is None and not w["used"]])')
  [ -n "$worker" ]
}
waitUntil oneWaits
stopProcess $worker
ctl a resume "$dir/left" >"$dir/resume.log" 2>&1 &
resume=$!
waitUntil hasState a one resuming
refused "is being suspended, resumed or migrated already" ctl a suspend one --to "$dir/x"
isGone "$dir/x" || fail "a refused suspend made a directory"
kill -CONT $worker
wait "$resume" || fail "the resume failed"
stillWorks a one

mkdir "$dir/small"
mount -t tmpfs -o size=64k,nr_inodes=16 none "$dir/small" 2>/dev/null || skip "no permission to mount a small disk"
dd if=/dev/zero of="$dir/small/filler" bs=4k count=16 2>/dev/null
onlyPlaceholder() { [ "$(ls -A "$dir/small")" = filler ]; }
refused "No space left on device" ctl a suspend one --to "$dir/small/snapshot"
waitUntil onlyPlaceholder
stillWorks a one
rm "$dir/small/filler"
mount -o remount,ro "$dir/small" || fail "cannot make the disk read-only"
refused "Read-only file system" ctl a suspend one --to "$dir/small/snapshot"
stillWorks a one
