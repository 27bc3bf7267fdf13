# What kernels keep in the device's own heap cannot be saved: such a program is not suspended, is told so, and goes on.
startNode a
goesOnRefused a device-heap "suspend PID --to $dir/x" "use malloc on the device, whose heap cannot be saved"
