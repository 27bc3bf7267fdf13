# If workers cannot be started, programs that need none are not affected, and the others get the reason.
own=$dir/tree  # a copy of the tree whose vgpu-worker can be moved away
mkdir -p "$own/bin" "$own/lib/vgpu"
cp "$tree/bin/vgpud" "$own/bin/"
cp "$tree"/lib/vgpu/{vgpu-worker,libvgpu-emulator.so} "$own/lib/vgpu/"
tree=$own startNode a
mv "$own/lib/vgpu/vgpu-worker" "$dir/vgpu-worker"

# It gets the waiting worker; no other one can replace that.
startDouble a one
hasState a one running || fail "the program with a worker is $(field a one state)"
saysThatNoneWaits() { says a 'no worker: this installation is incomplete'; }
waitUntil saysThatNoneWaits

VGPU_NODE=unix:$dir/a/vgpud.sock "$doubleProgram" two >"$dir/two.log" 2>&1 && fail "a session without a worker"
says two 'this installation is incomplete' || fail "the program was not told why"
waitUntil listsNot a two
hasOneDirectory() { [ "$(ls "$dir/a/sessions")" = "$(field a one session)" ]; }
waitUntil hasOneDirectory  # its state is not left behind

mv "$dir/vgpu-worker" "$own/lib/vgpu/"
startDouble a three
stillWorks a three
stillWorks a one
