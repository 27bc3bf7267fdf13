// All copies of a program, in one to three dimensions, of memory and of arrays. If the GPU can access both ends, a copy is one frame:
// pinned memory is in an arena, and all devices share one address space. To and from pageable memory, a few bytes go in the frame itself or
// come in the waiting call's slot; more go through staging slabs (staged-copy.h).
#pragma once

#include "intercept/session/copy/copy-end.h"
#include "intercept/session/copy/where.h"
#include "intercept/session/thread.h"

namespace vgpu::client {

// A synchronous copy returns when the program may access its own memory again.
enum class Completion { synchronous, asynchronous };

// The ends that the program declared to be GPU memory: such an end must be memory that the session knows.
struct Ends {
  bool destinationOnGpu = false, sourceOnGpu = false;
};

// Copies a box between memory and arrays, after checking each end against the session's memory. `stream` is a resolved handle. CUDA's
// result.
CUresult copyBox(Thread& thread, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size, uint64_t stream,
                 Completion completion, Ends ends = {});
// The same for `bytes` of memory.
CUresult copyBytes(Thread& thread, uint64_t destination, uint64_t source, uint64_t bytes, uint64_t stream, Completion completion,
                   Ends ends);

// Where [address, address + bytes) is.
Where locate(Session& session, uint64_t address, uint64_t bytes);
// Whether the bytes are the session's, so that a device can access them.
inline bool ownsMemory(Session& session, uint64_t address, uint64_t bytes) {
  Where where = locate(session, address, bytes);
  return where == Where::device || where == Where::arena || where == Where::pooled;
}

// The errors that copyBox() would return immediately for these ends; on success also where each end is.
CUresult checkCopy(Session& session, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size, Ends ends, Where& to,
                   Where& from);

// Fills `height` rows of `width` elements of 1, 2 or 4 bytes; `pitch` is in bytes and ignored for one row.
CUresult fillRows(Thread& thread, uint64_t destination, uint64_t pitch, uint32_t value, uint32_t elementBytes, uint64_t width,
                  uint64_t height, uint64_t stream);
// Whether the destination is registered memory of the program that no device can access (registered-memory.cc): the host then fills it, in
// stream order.
bool isFilledByHost(Session& session, uint64_t destination, uint64_t pitch, uint32_t elementBytes, uint64_t width, uint64_t height);
void fillOnHost(uint64_t destination, uint64_t pitch, uint32_t value, uint32_t elementBytes, uint64_t width, uint64_t height);
// The errors that fillRows() would return immediately.
CUresult checkFill(Session& session, uint64_t destination, uint64_t pitch, uint32_t elementBytes, uint64_t width, uint64_t height);

}  // namespace vgpu::client
