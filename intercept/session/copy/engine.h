// Moves bytes between the program's memory and the GPU. Pinned memory is in an arena and copied by the GPU alone; pageable memory
// goes through staging slabs (staged-copy.h), a few bytes in the frame itself or in the thread's slot.
#pragma once

#include "intercept/session/thread.h"

namespace vgpu::client {

// The kind of call: a synchronous copy returns when the program may touch its own memory again.
enum class Completion { synchronous, asynchronous };

// The ends that the program declared to be GPU memory: such an end must be memory that the session knows.
struct Ends {
  bool destinationOnGpu = false, sourceOnGpu = false;
};

// cuMemcpy and its kin: `destination` and `source` are unified addresses, each checked against the session's memory. `stream` is
// a resolved handle. CUDA's answer.
CUresult copyBytes(Thread& thread, uint64_t destination, uint64_t source, uint64_t bytes, uint64_t stream,
                   Completion completion, Ends ends = {});

// Where [address, address + bytes) lies; `nowhere` if it begins in an allocation and does not end in it.
enum class Where { device, arena, pageable, nowhere };
Where locate(Session& session, uint64_t address, uint64_t bytes);

// `height` rows of `width` elements of 1, 2 or 4 bytes; `pitch` in bytes, of no meaning for one row.
CUresult fillRows(Thread& thread, uint64_t destination, uint64_t pitch, uint32_t value, uint32_t elementBytes, uint64_t width,
                  uint64_t height, uint64_t stream);

}  // namespace vgpu::client
