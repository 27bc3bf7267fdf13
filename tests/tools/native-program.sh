# Shared by the cases of native programs: a program and its child that count, both using a double of NVIDIA's driver (checkpoint-double.c).
# shellcheck shell=bash disable=SC2154
double=$dir/driver
mkdir "$double"
driverFolder=$tree/tests/tools/checkpoint-double
[ -e "$driverFolder/libcuda.so.1" ] || skip "no double of the driver"
counter='
import os, socket, sys, time
if len(sys.argv) > 2:  # a connection to itself, which CRIU cannot save
    listener = socket.create_server(("127.0.0.1", 0))
    near = socket.create_connection(listener.getsockname())
    far = listener.accept()
if os.fork() == 0: sys.argv[1] += ".child"
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)  # of constant size, because CRIU compares the size with that at the save
count = 0
while True:
    count += 1
    os.pwrite(file, b"%d %010d\n" % (os.getpid(), count), 0)
    time.sleep(0.01)
'
native() { LD_LIBRARY_PATH=$driverFolder VGPU_CHECKPOINT_DOUBLE=$double "$tree/bin/vgpuctl" "$@"; }
countOf() { echo $((10#$(cut -d' ' -f2 "$1" 2>/dev/null))); }
hasCounted() { [ "$(countOf "$1")" -gt "$2" ] 2>/dev/null; }
counts() { waitUntil hasCounted "$1" $(($(countOf "$1") + 1)); }
asked() { [ "$(tr '\n' ' ' <"$double/log" 2>/dev/null)" = "$1" ] || fail "the driver was asked for: $(cat "$double/log")"; }
# start [connected]: starts a counter and its child, both using the driver.
start() {
  rm -f "$double"/* "$dir/count" "$dir/count.child"
  setsid python3 -c "$counter" "$dir/count" "$@" </dev/null >"$dir/counter.log" 2>&1 &
  root=$!
  waitUntil test -s "$dir/count" -a -s "$dir/count.child"
  child=$(cut -d' ' -f1 "$dir/count.child")
  echo 0 >"$double/$root"
  echo 0 >"$double/$child"
}
goesOn() {
  counts "$dir/count"
  counts "$dir/count.child"
  [ "$(cat "$double/$root" "$double/$child" | tr -d '\n')" = 00 ] || fail "the driver has them in another state"
  [ ! -e "$dir/saved" ] || fail "something of the snapshot is left"
}
