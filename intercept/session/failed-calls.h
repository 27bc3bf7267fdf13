// What a program is told of its calls that fail (cuLogs*): each is a line, behind those that the worker's driver has written about it.
//
// Any thread, outside the gate, without a lock. A call that succeeds pays a comparison. Stays in the program's process over a suspend.
#pragma once

#include <cuda.h>

#include "vgpu/api/call-log.h"

namespace vgpu::client {

class Thread;

class FailedCalls {
 public:
  // Brings what the worker's driver has written, and reads: see CallLog. For cuLogs*.
  CUresult read(Thread& thread, CUlogIterator* from, const CallLog::Reader& to);
  CUresult listen(CUlogsCallback function, void* data, CUlogsCallbackHandle* added, CUlogsCallbackHandle removed) {
    return log.listen(function, data, added, removed);
  }
  void add(Thread& thread, const char* entry, CUresult result);

 private:
  void bring(Thread& thread);

  CallLog log;
};

// "CUDA_ERROR_OUT_OF_MEMORY"; nullptr if CUDA has no such error.
const char* nameOfError(CUresult error);

// Adds a line about a call of the program's that has failed. `entry`: the C function's name; of a function that is none, nothing is
// added, because a C function has called it.
void noteFailedCall(const char* entry, CUresult result) noexcept;
inline CUresult noted(const char* entry, CUresult result) {
  if (result != CUDA_SUCCESS) [[unlikely]]
    noteFailedCall(entry, result);
  return result;
}

}  // namespace vgpu::client
