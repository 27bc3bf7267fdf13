// Looks like cuBLAS of CUDA 12 by its name alone, and can be called by patch-plugin-host.
int pluginWork(void) { return 12; }
