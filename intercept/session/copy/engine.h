// Every copy of a program, in one to three dimensions, of memory and of arrays. If the GPU can access both ends, it is one frame:
// pinned memory is in an arena, and one address space holds every device. To and from pageable memory a few bytes go in the frame
// itself, or come in the waiting call's slot; more go through staging slabs (staged-copy.h).
#pragma once

#include "intercept/session/copy/copy-end.h"
#include "intercept/session/copy/where.h"
#include "intercept/session/thread.h"

namespace vgpu::client {

// The kind of call: a synchronous copy returns when the program may touch its own memory again.
enum class Completion { synchronous, asynchronous };

// The ends that the program declared to be GPU memory: such an end must be memory that the session knows.
struct Ends {
  bool destinationOnGpu = false, sourceOnGpu = false;
};

// Copies a box between memory and arrays, each end checked against what the session has. `stream` is a resolved handle. CUDA's
// answer.
CUresult copyBox(Thread& thread, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size, uint64_t stream,
                 Completion completion, Ends ends = {});
// The same for `bytes` of memory.
CUresult copyBytes(Thread& thread, uint64_t destination, uint64_t source, uint64_t bytes, uint64_t stream, Completion completion,
                   Ends ends);

// Where [address, address + bytes) lies.
Where locate(Session& session, uint64_t address, uint64_t bytes);
// Whether they are the session's: a device can use them.
inline bool ownsMemory(Session& session, uint64_t address, uint64_t bytes) {
  Where where = locate(session, address, bytes);
  return where == Where::device || where == Where::arena || where == Where::pooled;
}

// What copyBox() would refuse at once of these ends, else where each lies.
CUresult checkCopy(Session& session, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size, Ends ends, Where& to,
                   Where& from);

// `height` rows of `width` elements of 1, 2 or 4 bytes; `pitch` in bytes, of no meaning for one row.
CUresult fillRows(Thread& thread, uint64_t destination, uint64_t pitch, uint32_t value, uint32_t elementBytes, uint64_t width,
                  uint64_t height, uint64_t stream);
// Whether that is memory of the program's which is registered and which no device reaches (registered-memory.cc): then the host fills it,
// when the stream has come there.
bool isFilledByHost(Session& session, uint64_t destination, uint64_t pitch, uint32_t elementBytes, uint64_t width, uint64_t height);
void fillOnHost(uint64_t destination, uint64_t pitch, uint32_t value, uint32_t elementBytes, uint64_t width, uint64_t height);
// What fillRows() would refuse at once.
CUresult checkFill(Session& session, uint64_t destination, uint64_t pitch, uint32_t elementBytes, uint64_t width, uint64_t height);

}  // namespace vgpu::client
