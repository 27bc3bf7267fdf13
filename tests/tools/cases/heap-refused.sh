# Memory that kernels allocate on the device's heap cannot be saved: a program that does so is not suspended, gets the reason, and goes on.
startNode a
goesOnRefused a device-heap "suspend PID --to $dir/x" "use malloc on the device, whose heap cannot be saved"
