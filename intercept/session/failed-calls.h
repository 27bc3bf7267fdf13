// The log of the program's failed calls (cuLogs*): a line for each, after the lines that the worker's driver has logged about it.
//
// Any thread, outside the gate, without a lock. A successful call costs one comparison. Stays in the program's process over a suspend.
#pragma once

#include <cuda.h>

#include "vgpu/api/call-log.h"

namespace vgpu::client {

class Thread;

class FailedCalls {
 public:
  // Fetches the lines of the worker's driver, then reads: see CallLog. For cuLogs*.
  CUresult read(Thread& thread, CUlogIterator* from, const CallLog::Reader& to);
  CUresult listen(CUlogsCallback function, void* data, CUlogsCallbackHandle* added, CUlogsCallbackHandle removed) {
    return log.listen(function, data, added, removed);
  }
  void add(Thread& thread, const char* entry, CUresult result);

 private:
  void bring(Thread& thread);

  CallLog log;
};

// For example "CUDA_ERROR_OUT_OF_MEMORY"; nullptr if CUDA has no such error.
const char* nameOfError(CUresult error);

// Adds a line about a failed call. `entry`: the C function's name. If it is the name of an internal function, nothing is added: the C
// function that called it adds the line.
void noteFailedCall(const char* entry, CUresult result) noexcept;
inline CUresult noted(const char* entry, CUresult result) {
  if (result != CUDA_SUCCESS) [[unlikely]]
    noteFailedCall(entry, result);
  return result;
}

}  // namespace vgpu::client
