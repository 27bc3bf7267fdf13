// A library whose functions all fail: in a session none is executed, because each is rewritten to jump to a face's function. Each has room
// for the jump, as the vendor's have.
#define REFUSAL(name)                                                                                                  \
  __asm__(".pushsection .text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name                        \
          ": mov $13, %eax\n ret\n.p2align 4, 0xcc\n.size " #name ", . - " #name "\n.popsection");
#include REFUSALS
