# When vgpud starts, it names an unusable store and the reason, before a program is suspended to it. vgpud keeps running, because a snapshot
# can go to a directory.
mkdir "$dir/ram" "$dir/fixed"
mount -t ramfs vgpu-test "$dir/ram" 2>/dev/null || skip "no permission to mount a file system without holes"
mount -t tmpfs vgpu-test "$dir/fixed" || fail "cannot mount a second one"
# unfit STORE PATTERN: a daemon with that store must report PATTERN and keep running.
unfit() {
  VGPU_STORE=$1 startNode a
  waitUntil says a "the store of snapshots $1 cannot be used: .*$2"
  succeeds ctl a ps
  stopNode a
}
unfit "$dir/ram/store" "parts of files cannot be freed"
mkdir -m 700 "$dir/ram/there"
unfit "$dir/ram/there" "parts of files cannot be freed"
[ -z "$(ls "$dir/ram/there")" ] || fail "something is left in the store: $(ls "$dir/ram/there")"
mkdir -m 700 "$dir/fixed/store" "$dir/fixed/closed"
mkdir -m 777 "$dir/open"
unfit "$dir/open" "others"
mkdir -m 700 "$dir/foreign"
chown 12345 "$dir/foreign"
unfit "$dir/foreign" "user"
mount -o remount,ro "$dir/fixed" || fail "cannot forbid writing"
unfit "$dir/fixed/store" "Read-only file system"
unfit "$dir/fixed/new/store" "Read-only file system"
: >"$dir/file"
unfit "$dir/file" "directory"

# A usable store, or one that does not exist yet, is not mentioned, and nothing is created for it.
export VGPU_STORE=$dir/store
startNode b
startContents b one 1
succeeds ctl b suspend one --name one
succeeds ctl b resume one
memoryIsRight one
endContents one
stopNode b
! says b "cannot be used" || fail "a store that is fit was refused"
