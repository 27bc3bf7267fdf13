# A run directory that others can write, or a link of theirs, is refused, because whoever can create a socket there could pose as the
# daemon.
vgpud() { timeout "$limit" "$tree/bin/vgpud" --run-dir "$1" --device emulated; }
mkdir "$dir/open" && chmod 777 "$dir/open"
refused 'can be written by others' vgpud "$dir/open"
mkdir -m 700 "$dir/own"
ln -s own "$dir/link"
if chown -h 4242 "$dir/link" 2>/dev/null; then
  refused 'is a link of user 4242' vgpud "$dir/link"
fi
isEmpty "$dir/open" && isEmpty "$dir/own" || fail "a refused daemon has written"

# The user's own link is followed.
ln -s own "$dir/a"
startNode a
[ -S "$dir/own/vgpud.sock" ] || fail "the link does not lead to the run directory"
stopNode a
