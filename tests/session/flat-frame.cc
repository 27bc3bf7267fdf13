// Frames that are written flat are the bytes that Cap'n Proto writes.
#include "vgpu/api/flat-frame.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "cuda-frames.h"
#include "cuda-methods.h"

using namespace vgpu;

namespace {

constexpr size_t words = 64;

// Both builders' bytes of what `fill` sets.
template <typename Params, typename Fill>
void bothAlike(Fill fill) {
  static_assert(sizeof(api::FrameBuilder<Params>) == sizeof(void*), "this method's frame is not written flat");
  auto flat = kj::heapArray<capnp::word>(words), standard = kj::heapArray<capnp::word>(words);
  for (auto* space : {&flat, &standard}) std::memset(space->begin(), 0, words * sizeof(capnp::word));
  api::FrameBuilder<Params> builder(flat);
  fill(builder);
  capnp::FlatMessageBuilder message(standard);
  auto root = message.initRoot<Params>();
  fill(root);
  CHECK(std::memcmp(flat.begin(), standard.begin(), words * sizeof(capnp::word)) == 0);
}

}  // namespace

TEST_CASE("numbers of every size lie where Cap'n Proto has them") {
  bothAlike<api::Cuda::FillParams>([](auto& fill) {
    fill.setDestination(0x1122334455667788);
    fill.setPitch(512);
    fill.setValue(0xfeedface);
    fill.setElementBytes(4);
    fill.setWidth(~uint64_t{0});
    fill.setHeight(7);
    fill.setStream(3);
  });
  bothAlike<api::Cuda::StreamCreateParams>([](auto& stream) {
    stream.setPhStream(9);
    stream.setFlags(1);
    stream.setPriority(-5);
  });
}

TEST_CASE("data of any length follows its pointer, and flags are bits") {
  for (unsigned bytes : {0u, 1u, 7u, 8u, 9u, 100u, 255u}) {
    CAPTURE(bytes);
    bothAlike<api::Cuda::LaunchKernelParams>([&](auto& launch) {
      launch.setFunction(0xabc);
      launch.setStream(0xdef);
      launch.setGridX(1);
      launch.setGridY(2);
      launch.setGridZ(3);
      launch.setBlockX(4);
      launch.setBlockY(5);
      launch.setBlockZ(6);
      launch.setSharedBytes(48 << 10);
      launch.setCooperative(bytes % 2 != 0);
      auto data = launch.initParameters(bytes);
      for (unsigned i = 0; i < bytes; ++i) data[i] = static_cast<kj::byte>(i * 37 + 1);
    });
  }
}
