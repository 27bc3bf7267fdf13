// Frames have the bytes that Cap'n Proto writes for the generated schema, and readers accept arbitrary bytes from a program.
#include "vgpu/api/flat-frame.h"

#include <capnp/serialize.h>
#include <doctest/doctest.h>
#include <kj/exception.h>

#include <cstring>
#include <vector>

#include "cuda-frames.capnp.h"
#include "cuda-frames.h"
#include "cuda-methods.h"
#include "intercept/session/copy/frame.h"

using namespace vgpu;

namespace {

constexpr size_t words = 64;

// Compares the bytes of both builders for what `fill` sets.
template <typename Params, typename Schema, typename Fill>
void bothAlike(Fill fill) {
  auto flat = kj::heapArray<capnp::word>(words), standard = kj::heapArray<capnp::word>(words);
  for (auto* space : {&flat, &standard}) std::memset(space->begin(), 0, words * sizeof(capnp::word));
  api::FrameBuilder<Params> builder(flat);
  fill(builder);
  capnp::FlatMessageBuilder message(standard);
  auto root = message.initRoot<Schema>();
  fill(root);
  CHECK(std::memcmp(flat.begin(), standard.begin(), words * sizeof(capnp::word)) == 0);
}

}  // namespace

TEST_CASE("numbers of every size lie where Cap'n Proto puts them") {
  bothAlike<api::Cuda::FillParams, schema::FillParams>([](auto& fill) {
    fill.setDestination(0x1122334455667788);
    fill.setPitch(512);
    fill.setValue(0xfeedface);
    fill.setElementBytes(4);
    fill.setWidth(~uint64_t{0});
    fill.setHeight(7);
    fill.setStream(3);
  });
  bothAlike<api::Cuda::StreamCreateParams, schema::StreamCreateParams>([](auto& stream) {
    stream.setPhStream(9);
    stream.setFlags(1);
    stream.setPriority(-5);
  });
}

TEST_CASE("data of any length follows its pointer, and flags are bits") {
  for (unsigned bytes : {0u, 1u, 7u, 8u, 9u, 100u, 255u}) {
    CAPTURE(bytes);
    bothAlike<api::Cuda::LaunchKernelParams, schema::LaunchKernelParams>([&](auto& launch) {
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

TEST_CASE("several Data lists follow each other, in a frame and in a reply that grows") {
  const std::vector<int32_t> sizes{32, 64, 96};
  const std::vector<uint64_t> shared{1, 2, 3};
  auto fill = [&](auto& table) {
    table.setFunction(0xabc);
    table.setFlags(1);
    table.setBlockSizes(kj::arrayPtr(sizes.data(), sizes.size()));
    table.setSharedBytes(kj::arrayPtr(shared.data(), shared.size()));
  };
  auto space = kj::heapArray<capnp::word>(words);
  std::memset(space.begin(), 0, space.asBytes().size());
  api::FrameBuilder<api::Cuda::OccupancyTableParams> frame(space);
  fill(frame);
  std::vector<capnp::word> growing;
  api::FrameBuilder<api::Cuda::OccupancyTableParams> reply(growing);
  fill(reply);
  REQUIRE(growing.size() < words);
  CHECK(std::memcmp(space.begin(), growing.data(), growing.size() * sizeof(capnp::word)) == 0);

  kj::ArrayPtr<const capnp::word> segment(growing.data(), growing.size());
  capnp::SegmentArrayMessageReader message(kj::arrayPtr(&segment, 1));
  auto standard = message.getRoot<schema::OccupancyTableParams>();
  CHECK(standard.getBlockSizes().size() == 12);
  CHECK(standard.getSharedBytes().size() == 24);
  api::FrameReader<api::Cuda::OccupancyTableParams> read(segment);
  REQUIRE(read.getBlockSizes().size() == 3);
  REQUIRE(read.getSharedBytes().size() == 3);
  CHECK(read.getBlockSizes()[2] == 96);
  CHECK(read.getSharedBytes()[2] == 3);
}

TEST_CASE("a part of a frame is as long as its contents, and is read like the whole structure with zeros behind") {
  using Whole = api::Cuda::Copy3dParams;
  std::vector<capnp::word> space;
  api::FramePart<Whole, 2, 1> part(space);
  CHECK(decltype(part)::words == 4);
  part.setTo(7);
  part.setStream(9);
  part.setData(kj::StringPtr("abc").asBytes());
  CHECK(space.size() == 5);
  kj::ArrayPtr<const capnp::word> segment(space.data(), space.size());
  api::FrameReader<Whole> flat(segment);
  capnp::SegmentArrayMessageReader message(kj::arrayPtr(&segment, 1));
  auto standard = message.getRoot<schema::Copy3dParams>();
  auto check = [](auto& frame) {
    CHECK(frame.getTo() == 7);
    CHECK(frame.getStream() == 9);
    CHECK(frame.getFrom() == 0);
    CHECK(frame.getWidth() == 0);
    CHECK(frame.getFromZ() == 0);
    REQUIRE(frame.getData().size() == 3);
    CHECK(frame.getData()[2] == 'c');
  };
  check(flat);
  check(standard);
}

TEST_CASE("a small copy's frame is 64 bytes, one cache line") {
  constexpr uint64_t header = sizeof(FrameHeader), word = sizeof(capnp::word);
  CHECK(header + (client::InlineCopy::words + client::dataWords(8)) * word == frameUnit);
  CHECK(header + client::RowCopy::words * word == frameUnit);
  CHECK(header + client::MemoryBoxCopy::words * word <= 2 * frameUnit);
  CHECK(header + client::BoxCopy::words * word <= 3 * frameUnit);
}

TEST_CASE("data for which a frame has no space is refused before it is written") {
  auto space = kj::heapArray<capnp::word>(api::FrameBuilder<api::Cuda::LaunchKernelParams>::words + 1);
  std::memset(space.begin(), 0, space.asBytes().size());
  api::FrameBuilder<api::Cuda::LaunchKernelParams> launch(space);
  CHECK_THROWS_AS(launch.initParameters(9), kj::Exception);
}

TEST_CASE("a text without a zero byte and a structure of another size are refused") {
  auto read = [](auto& words) { return kj::arrayPtr(words.data(), words.size()); };
  std::vector<capnp::word> name, shape;
  api::FrameBuilder<api::Cuda::ModuleFunctionParams>(name).setName("f");
  CHECK(api::FrameReader<api::Cuda::ModuleFunctionParams>(read(name)).getName() == "f");
  auto* last = kj::arrayPtr(name.data(), name.size()).asBytes().begin() + (name.size() - 1) * sizeof(capnp::word);
  std::memset(last, 'f', 2);
  CHECK_THROWS_AS(api::FrameReader<api::Cuda::ModuleFunctionParams>(read(name)).getName(), kj::Exception);
  api::FrameBuilder<api::Cuda::ArrayCreateParams>(shape).setShape(uint64_t{7});
  CHECK(api::FrameReader<api::Cuda::ArrayCreateParams>(read(shape)).getShape<uint64_t>() == 7);
  CHECK_THROWS_AS(api::FrameReader<api::Cuda::ArrayCreateParams>(read(shape)).getShape<uint32_t>(), kj::Exception);
}

namespace {

using Launch = api::FrameReader<api::Cuda::LaunchKernelParams>;

// A frame made by Cap'n Proto, which the cases below damage.
kj::Array<capnp::word> launchFrame() {
  auto space = kj::heapArray<capnp::word>(12);
  std::memset(space.begin(), 0, space.size() * sizeof(capnp::word));
  capnp::FlatMessageBuilder message(space);
  auto launch = message.initRoot<schema::LaunchKernelParams>();
  launch.setFunction(0xabcdef);
  launch.setBlockZ(~0u);
  launch.setCooperative(true);
  auto data = launch.initParameters(13);
  for (unsigned i = 0; i < data.size(); ++i) data[i] = static_cast<kj::byte>(i + 1);
  return space;
}

void setWord(kj::Array<capnp::word>& frame, size_t index, uint64_t value) {
  std::memcpy(frame.asBytes().begin() + index * sizeof value, &value, sizeof value);
}

constexpr uint64_t frameWords = schema::LaunchKernelParams::_capnpPrivate::dataWordSize;
constexpr size_t pointerWord = 1 + frameWords;

}  // namespace

TEST_CASE("frames that Cap'n Proto writes are read flat") {
  auto frame = launchFrame();
  Launch launch(frame);
  CHECK(launch.getFunction() == 0xabcdef);
  CHECK(launch.getStream() == 0);
  CHECK(launch.getBlockZ() == ~0u);
  CHECK(launch.getCooperative());
  auto data = launch.getParameters();
  REQUIRE(data.size() == 13);
  CHECK(data[0] == 1);
  CHECK(data[12] == 13);
}

TEST_CASE("fields that a writer did not know or did not set are zero") {
  auto frame = launchFrame();
  SUBCASE("a shorter structure without pointers") {
    setWord(frame, 0, uint64_t{1} << 32);
    Launch launch(frame);
    CHECK(launch.getFunction() == 0xabcdef);
    CHECK(launch.getBlockZ() == 0);
    CHECK(!launch.getCooperative());
    CHECK(launch.getParameters().size() == 0);
  }
  SUBCASE("no structure at all") {
    setWord(frame, 0, 0);
    CHECK(Launch(frame).getFunction() == 0);
    CHECK(Launch(nullptr).getFunction() == 0);
  }
  SUBCASE("no data") {
    setWord(frame, pointerWord, 0);
    CHECK(Launch(frame).getParameters().size() == 0);
  }
}

TEST_CASE("a frame whose pointers lead out of it is refused") {
  auto frame = launchFrame();
  auto refuses = [&] { CHECK_THROWS_AS(Launch(frame).getParameters(), kj::Exception); };
  constexpr uint64_t structure = frameWords << 32 | uint64_t{1} << 48;
  constexpr uint64_t bytes = 1 | uint64_t{2} << 32;
  SUBCASE("a list for a structure") {
    setWord(frame, 0, structure | 1);
    refuses();
  }
  SUBCASE("another segment") {
    setWord(frame, 0, structure | 2);
    refuses();
  }
  SUBCASE("a structure behind the frame") {
    setWord(frame, 0, structure | 12 << 2);
    refuses();
  }
  SUBCASE("a structure that ends behind the frame") {
    setWord(frame, 0, structure | 5 << 2);
    refuses();
  }
  SUBCASE("a structure before the frame") {
    setWord(frame, 0, structure | (~uint32_t{0} - 7));
    refuses();
  }
  SUBCASE("numbers without end") {
    setWord(frame, 0, uint64_t{0xffff} << 32);
    refuses();
  }
  SUBCASE("a structure for data") {
    setWord(frame, pointerWord, bytes & ~1);
    refuses();
  }
  SUBCASE("data of words") {
    setWord(frame, pointerWord, 1 | uint64_t{5} << 32 | uint64_t{1} << 35);
    refuses();
  }
  SUBCASE("data behind the frame") {
    setWord(frame, pointerWord, bytes | 400 << 2 | uint64_t{8} << 35);
    refuses();
  }
  SUBCASE("data before the frame") {
    setWord(frame, pointerWord, bytes | 0xfffffe00 | uint64_t{8} << 35);
    refuses();
  }
  SUBCASE("data that ends behind the frame") {
    setWord(frame, pointerWord, bytes | uint64_t{100} << 35);
    refuses();
  }
  SUBCASE("more data than there is memory") {
    setWord(frame, pointerWord, ~uint64_t{0} << 35 | bytes);
    refuses();
  }
}
