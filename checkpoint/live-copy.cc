#include "checkpoint/live-copy.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "checkpoint/staging-ring.h"
#include "stub/worker/execution.h"
#include "vgpu/base/thread-group.h"
#include "vgpu/base/work-queue.h"

namespace vgpu::checkpoint {

namespace {

// For which the GPUs are waited for, with the program's calls not executed.
constexpr auto idleLimit = std::chrono::milliseconds(50);
// How many chunks are copied between two frames: 32 MiB, 0.7 ms.
constexpr size_t chunksOfSlice = 16;

}  // namespace

uint64_t bytesOf(const std::vector<DevicePiece>& pieces) {
  uint64_t bytes = 0;
  for (auto& piece : pieces) bytes += piece.bytes;
  return bytes;
}

// Streams for copies beside the program's work, one on each device: DeviceProgress::ownStream() comes behind all that it has
// begun.
class LiveCopy::Streams {
 public:
  // Begins to copy on `on`'s thread.
  void begin(stub::SessionState& on, const DevicePiece& piece, std::byte* out) {
    auto& of = on.select(piece.device);
    CUstream& stream = streams[piece.device];
    if (stream == nullptr) stub::require(of.driver, of.driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "making a stream");
    CUresult result = of.driver.cuMemcpyDtoHAsync_v2(out, piece.address, piece.bytes, stream);
    stub::require(of.driver, result, "copying the device's memory");
  }
  void await(stub::SessionState& on) {
    for (auto [device, stream] : streams) {
      auto& driver = on.select(device).driver;
      stub::require(driver, driver.cuStreamSynchronize(stream), "copying the device's memory");
    }
  }
  void end(stub::SessionState& on) {
    for (auto [device, stream] : streams) on.select(device).driver.cuStreamDestroy_v2(stream);
    streams.clear();
  }

 private:
  std::map<unsigned, CUstream> streams;
};

bool LiveCopy::visit(const std::function<void(stub::SessionState&)>& work) { return worker.interlude(false, idleLimit, work); }

std::optional<std::vector<DevicePiece>> LiveCopy::digested(const Digester& digester) { return find(&digester); }
std::optional<std::vector<DevicePiece>> LiveCopy::all() { return find(nullptr); }

std::optional<std::vector<DevicePiece>> LiveCopy::find(const Digester* digester) {
  std::vector<DevicePiece> pieces;
  auto look = [&](stub::SessionState& on) { pieces = devicePieces(on, digester); };
  if (!worker.interlude(digester != nullptr, idleLimit, look)) return std::nullopt;
  return pieces;
}

void LiveCopy::copy(const std::vector<DevicePiece>& pieces, unsigned writers, Phase& phase, const Take& take) {
  if (pieces.empty()) return;
  writers = std::min<unsigned>(writers, static_cast<unsigned>(pieces.size()));
  StagingRing ring(&driver, StagingRing::slotsFor(writers, pieces.size()));
  Streams streams;
  KJ_DEFER(visit([&](stub::SessionState& on) { streams.end(on); }));
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
    for (size_t next = 0; next < pieces.size();) {
      std::vector<Slot*> slots;
      for (auto slot = unused.pop(); slot; slot = unused.tryPop()) {
        slots.push_back(*slot);
        slots.back()->bytes = 0;  // as long as nothing is copied
        if (slots.size() == chunksOfSlice || next + slots.size() == pieces.size()) break;
      }
      if (slots.empty()) return;  // another thread has failed
      auto begin = std::chrono::steady_clock::now();
      visit([&](stub::SessionState& on) {
        for (size_t i = 0; i < slots.size(); ++i) {
          auto& piece = pieces[next + i];
          slots[i]->chunk = next + i;
          if (!on.ownsMemory(piece.address, piece.bytes)) continue;  // it is gone
          streams.begin(on, piece, slots[i]->memory);
          slots[i]->bytes = piece.bytes;
        }
        streams.await(on);
      });
      for (Slot* slot : slots) {
        phase.advance(slot->bytes);
        (slot->bytes > 0 ? filled : unused).push(slot);
      }
      next += slots.size();
      // Half of the time is the program's.
      std::this_thread::sleep_for(std::chrono::steady_clock::now() - begin);
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
