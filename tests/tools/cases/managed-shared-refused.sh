# If a device that shares a __managed__ variable with others was reset, a driver places the variable elsewhere: such a program is neither
# suspended nor migrated, gets the reason, and goes on.
export VGPU_EMULATED=devices=2 VGPU_PAUSE_INDEX=1
startNode a
startNode b
why="several devices of this program share a __managed__ variable"
goesOnRefused a managed-shared "suspend PID --to $dir/x" "$why" "migrate PID --to $dir/b" "$why" \
  "explain PID" "refused module 0x[0-9a-f]*: several devices of this program"
