# Changes that kernels make to a graph's nodes cannot be read back: such a program is neither suspended nor migrated, gets the reason, and
# goes on.
startNode a
startNode b
why="kernels may change nodes of graph 0x[0-9a-f]* (cudaGraphKernelNodeUpdatesApply and similar)"
goesOnRefused a updated-nodes "suspend PID --to $dir/x" "$why" "migrate PID --to $dir/b" "$why" \
  "explain PID" "refused graph 0x[0-9a-f]*: kernels may change nodes"
