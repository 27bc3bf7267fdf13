// libcudart.so.12: what a program that is linked with the shared runtime of CUDA 12 loads by that name. It exports every function, but
// without its code: libcudart.so.13, which is preloaded, redirects the functions to its own before anything calls them, as it does for a
// runtime that is linked into a program, or for NVIDIA's libcudart.so.12 if the program finds that first. Without the preload each function
// returns cudaErrorInitializationError.

// A string that every runtime contains, and no library that only forwards these functions (intercept/patch/plan.cc).
__attribute__((used)) static const char text[] = "CUDA driver version is insufficient for CUDA runtime version";

#define EXPORT(name, function)                                                                                         \
  __asm__(".pushsection .text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name                        \
          ": mov $3, %eax\n ret\n.p2align 4, 0xcc\n.size " #name ", . - " #name "\n.popsection");
#include "export-list-12.inc"
