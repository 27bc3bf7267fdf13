// Copies between the program's pageable memory and the GPU through staging slabs, in one to three dimensions, of memory and of arrays. A
// box is cut into tiles (tiles.h); a tile is packed into a slab, and one frame copies it, however many rows it has. Several tiles are
// pending at a time; from a few MiB on, threads share them.
//
// Any thread, outside the gate. Slabs of frames that are pending at a suspend are part of the snapshot.
#pragma once

#include "intercept/session/copy/copy-end.h"
#include "intercept/session/thread.h"

namespace vgpu::client {

// Returns when the program's bytes have been read, as CUDA guarantees for pageable memory. `unit`: the bytes of an array's element, else 1.
// `stream` is a resolved handle. CUDA's result.
CUresult copyFromPageable(Thread& thread, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size, uint64_t unit,
                          uint64_t stream);
// Returns when the bytes have arrived. Leaves errors of earlier posted work to the next call that reports them.
CUresult copyToPageable(Thread& thread, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size, uint64_t unit,
                        uint64_t stream);

}  // namespace vgpu::client
