// libcudart.so.12: what a program that is linked with the shared runtime of CUDA 12 loads by that name. It has every function's name and
// no code: libcudart.so.13, which is preloaded, redirects them to its own before anything calls them, as it redirects those of a runtime
// that is linked into a program, or of NVIDIA's own libcudart.so.12 if the program finds that one first. Without the preload each returns
// cudaErrorInitializationError.

// A text that every runtime has, and no object that only hands these functions on (intercept/patch/plan.cc).
__attribute__((used)) static const char text[] = "CUDA driver version is insufficient for CUDA runtime version";

#define EXPORT(name, function)                                                                                         \
  __asm__(".pushsection .text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name                        \
          ": mov $3, %eax\n ret\n.p2align 4, 0xcc\n.size " #name ", . - " #name "\n.popsection");
#include "export-list-12.inc"
