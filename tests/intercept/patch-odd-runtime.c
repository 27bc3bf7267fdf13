// Libraries that look like an object with a CUDA runtime linked into it, most of them with something that prevents patching. The tests only
// read their files. A macro chooses: FORWARDS has the functions but none of a runtime's strings, NO_ROOM has adjacent functions without a
// gap, OLDER has a function that CUDA 13 removed, OF12 has one that CUDA 12 has too, SHARED_CODE has two functions at one address.
__asm__(
#ifndef FORWARDS
    ".section .rodata\n .asciz \"CUDA driver version is insufficient for CUDA runtime version\"\n"
#endif
    ".text\n"
    ".p2align 4\n .globl __cudaRegisterFatBinary\n .type __cudaRegisterFatBinary, @function\n"
    "__cudaRegisterFatBinary: ret\n .size __cudaRegisterFatBinary, 1\n"
#ifndef NO_ROOM
    ".p2align 4\n"
#endif
    ".globl cudaMalloc\n .type cudaMalloc, @function\n cudaMalloc: ret\n .size cudaMalloc, 1\n"
#ifdef SHARED_CODE
    ".globl cudaFree\n .type cudaFree, @function\n cudaFree = cudaMalloc\n .size cudaFree, 1\n"
#endif
    ".p2align 4\n"
#ifdef OF12
    ".globl cudaGetDeviceProperties_v2\n .type cudaGetDeviceProperties_v2, @function\n"
    "cudaGetDeviceProperties_v2: ret\n .size cudaGetDeviceProperties_v2, 1\n.p2align 4\n"
#endif
#ifdef OLDER
    ".globl cudaThreadExit\n .type cudaThreadExit, @function\n cudaThreadExit: ret\n .size cudaThreadExit, 1\n"
#endif
    ".p2align 4\n .byte 0x90\n .p2align 4\n");
