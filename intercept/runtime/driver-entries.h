// The driver as the rows see it: the C functions of <cuda.h>, each bound to libcuda.so.1 at the program's first CUDA call, not before. A
// program starts even if the installed libcuda.so.1 lacks a function: a call of it returns CUDA_ERROR_NOT_SUPPORTED, and the first such
// call prints a message with the function's name.
#pragma once
namespace vgpu::runtime {

/// Opens libcuda.so.1 and binds every driver function that a row calls. Called once, under the initialisation lock. Returns null, or the
/// dynamic linker's error text, which is valid until that linker's next call.
const char* bindDriver();

}  // namespace vgpu::runtime
