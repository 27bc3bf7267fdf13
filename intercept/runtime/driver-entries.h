// The driver, as the rows see it: the C functions of <cuda.h>, each bound to libcuda.so.1 when the program makes its first CUDA
// call and not before. A program starts even if the installed libcuda.so.1 lacks a function: a call of it returns
// CUDA_ERROR_NOT_SUPPORTED, and the first one prints a message with its name.
#pragma once
namespace vgpu::runtime {

/// Opens libcuda.so.1 and binds every driver function that a row calls. Once, under the lock of the first
/// initialisation. Returns null, or why there is no driver (text of the dynamic linker, valid until its next call).
const char* bindDriver();

}  // namespace vgpu::runtime
