# A worker that was started before a program came, and dies while it starts, does not affect that program: another one is started for it.
own=$dir/tree  # a copy of the tree whose vgpu-worker is stopped when it is started the second time
mkdir -p "$own/bin" "$own/lib/vgpu"
cp "$tree/bin/vgpud" "$own/bin/"
cp "$tree"/lib/vgpu/{vgpu-worker,libvgpu-emulator.so} "$own/lib/vgpu/"
tree=$own startNode a
mv "$own/lib/vgpu/vgpu-worker" "$own/lib/vgpu/vgpu-worker-itself"
cat >"$own/lib/vgpu/vgpu-worker" <<END
#!/bin/sh
if mkdir "$dir/once" 2>/dev/null; then
  echo \$\$ >"$dir/starting"
  kill -STOP \$\$
fi
exec "$own/lib/vgpu/vgpu-worker-itself" "\$@"
END
chmod +x "$own/lib/vgpu/vgpu-worker"

startDouble a one  # it gets the waiting worker, and another one is started in its place
waitUntil [ -s "$dir/starting" ]
VGPU_NODE=unix:$dir/a/vgpud.sock "$doubleProgram" two >"$dir/two.log" 2>&1 &
double[two]=$!
isAsking() { [ "$(ls "$dir/a/sessions" | wc -l)" = 2 ]; }
waitUntil isAsking
sleep 0.1  # until it waits for that worker
kill -KILL "$(cat "$dir/starting")"
waitUntil openedOrEnded two
says two '^opened' || fail "a program got no session because of a worker that was not started for it"
stillWorks a two
stillWorks a one
