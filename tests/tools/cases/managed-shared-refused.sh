# Where a driver puts a __managed__ variable that several devices use, it does not put it again: such a program is not suspended, and
# does not move, is told so, and goes on.
export VGPU_EMULATED=devices=2
startNode a
startNode b
why="several devices of this program use a __managed__ variable"
goesOnRefused a managed-shared "suspend PID --to $dir/x" "$why" "migrate PID --to $dir/b" "$why" \
  "explain PID" "refused module 0x[0-9a-f]*: several devices of this program"
