#include "checkpoint/slice-copy.h"

#include <algorithm>

#include "vgpu/base/thread-group.h"
#include "vgpu/base/work-queue.h"

namespace vgpu::checkpoint {

namespace {

// How many chunks are copied at once: 32 MiB, 0.7 ms.
constexpr size_t chunksOfSlice = 16;

}  // namespace

void copyInSlices(const stub::Driver& driver, size_t pieces, unsigned writers, const CopySlice& copy, const TakePiece& take) {
  if (pieces == 0) return;
  writers = static_cast<unsigned>(std::min<size_t>(writers, pieces));
  StagingRing ring(&driver, StagingRing::slotsFor(writers, pieces));
  WorkQueue<Slot*> unused, filled;
  ThreadGroup threads([&] {
    unused.stop();
    filled.stop();
  });
  for (auto& slot : ring.all()) unused.push(&slot);
  auto write = [&](unsigned writer) {
    while (auto slot = filled.pop()) {
      take(writer, (*slot)->chunk, {(*slot)->memory, (*slot)->bytes});
      unused.push(*slot);
    }
  };
  auto read = [&] {
    for (size_t next = 0; next < pieces;) {
      std::vector<Slot*> slots;
      for (auto slot = unused.pop(); slot; slot = unused.tryPop()) {
        slots.push_back(*slot);
        slots.back()->chunk = next++;
        slots.back()->bytes = 0;  // stays 0 if nothing is copied
        if (slots.size() == chunksOfSlice || next == pieces) break;
      }
      if (slots.empty()) return;  // another thread has failed
      copy(slots);
      for (Slot* slot : slots) (slot->bytes > 0 ? filled : unused).push(slot);
    }
    filled.close();
  };
  threads.guard([&] {
    for (unsigned writer = 0; writer < writers; ++writer) threads.start([&, writer] { write(writer); });
    read();
  });
  threads.join();
}

}  // namespace vgpu::checkpoint
