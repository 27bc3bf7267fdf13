#include "checkpoint/live-copy.h"

#include <chrono>
#include <map>
#include <thread>

#include "stub/worker/execution.h"

namespace vgpu::checkpoint {

namespace {

// How long to wait for idle GPUs while the program's calls are not executed.
constexpr auto idleLimit = std::chrono::milliseconds(50);

}  // namespace

uint64_t bytesOf(const std::vector<DevicePiece>& pieces) {
  uint64_t bytes = 0;
  for (auto& piece : pieces) bytes += piece.bytes;
  return bytes;
}

// Streams for copies concurrent with the program's work, one per device. DeviceProgress::ownStream() is not usable, because it is ordered
// after all work that it has begun.
class LiveCopy::Streams {
 public:
  // Begins a copy on `on`'s thread.
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

void LiveCopy::copy(const std::vector<DevicePiece>& pieces, unsigned writers, Phase& phase, const TakePiece& take) {
  Streams streams;
  KJ_DEFER(visit([&](stub::SessionState& on) { streams.end(on); }));
  auto mayGoOn = std::chrono::steady_clock::now();
  auto copySlice = [&](std::span<Slot* const> slots) {
    std::this_thread::sleep_until(mayGoOn);
    const auto begin = std::chrono::steady_clock::now();
    visit([&](stub::SessionState& on) {
      for (Slot* slot : slots) {
        auto& piece = pieces[slot->chunk];
        if (!on.ownsMemory(piece.address, piece.bytes)) continue;  // it was freed
        streams.begin(on, piece, slot->memory);
        slot->bytes = piece.bytes;
      }
      streams.await(on);
    });
    for (Slot* slot : slots) phase.advance(slot->bytes);
    const auto end = std::chrono::steady_clock::now();
    mayGoOn = end + (end - begin);  // half of the time belongs to the program
  };
  copyInSlices(driver, pieces.size(), writers, copySlice, take);
}

}  // namespace vgpu::checkpoint
