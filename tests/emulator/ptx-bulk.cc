// Bulk copies: cp.async.bulk, with reductions and tensors.
#include "ptx-fixture.h"
#include "stub/emulator/ptx/run/tensor-map.h"

namespace vgpu::emulator {
namespace {

constexpr uint32_t shared = 48 * 1024;

// One thread executes `body`; then the block's shared memory is copied to `out`. %in, %io: arrays; %map: a tensor map; [bar]: an mbarrier
// with an arrival count of one; %s: the shared array, at offset 0.
std::string bulkKernel(const std::string& body) {
  return kernelText(
      ".param .u64 in, .param .u64 io, .param .u64 map, .param .u64 out, .param .b32 c0, .param .b32 c1, .param .b32 c2, "
      ".param .b32 c3, .param .b32 c4",
      R"(
    .reg .pred %p<4>; .reg .b32 %r<8>, %s, %c<5>; .reg .b16 %h<4>; .reg .b64 %x<8>, %in, %io, %map;
    .shared .align 1024 .b8 s[)" +
          std::to_string(shared) + R"(]; .shared .align 8 .b64 bar;
    mov.u32 %r0, %tid.x; mov.u32 %s, s; ld.param.u64 %in, [in]; ld.param.u64 %io, [io]; ld.param.u64 %map, [map];
    ld.param.b32 %c0, [c0]; ld.param.b32 %c1, [c1]; ld.param.b32 %c2, [c2]; ld.param.b32 %c3, [c3]; ld.param.b32 %c4, [c4];
    setp.eq.u32 %p0, %r0, 0; @!%p0 bra DONE; mbarrier.init.shared.b64 [bar], 1;
    )" + body +
          R"(
  DONE:
    bar.sync 0; ld.param.u64 %x0, [out]; shl.b32 %r1, %r0, 4;
  DRAIN:
    cvt.u64.u32 %x1, %r1; add.u64 %x1, %x0, %x1; add.u32 %r2, %s, %r1; ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2];
    st.global.v4.u32 [%x1], {%r3, %r4, %r5, %r6}; add.u32 %r1, %r1, 2048; setp.lt.u32 %p1, %r1, )" +
          std::to_string(shared) + R"(;
    @%p1 bra DRAIN; ret;)");
}

// Waits until `bytes` have arrived, without a time limit.
std::string expect(uint32_t bytes) {
  return "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], " + std::to_string(bytes) +
         ";\nWAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra WAIT;\n";
}

struct Bulk : Device {
  explicit Bulk(const std::string& body) : Device(bulkKernel(body)) { launch.maxInstructions = 1'000'000; }
  std::optional<Fault> tried(std::array<int32_t, 5> at = {}) {
    return tryLaunch("k", {{1, 1, 1}, {128, 1, 1}}, in, io, map, out, at[0], at[1], at[2], at[3], at[4]);
  }
  std::vector<uint8_t> result(std::array<int32_t, 5> at = {}) {
    const auto fault = tried(at);
    if (fault) FAIL(fault->report);
    return download<uint8_t>(out, shared);
  }
  void use(const TensorMap& tensor) {
    // The test device's allocations are page-aligned.
    map = upload(std::vector<TensorMap>{tensor});
  }
  uint64_t in = 0, io = 0, map = 0, out = upload(std::vector<uint8_t>(shared));
};

std::vector<uint8_t> counting(size_t bytes) {
  std::vector<uint8_t> values(bytes);
  for (size_t i = 0; i < bytes; ++i) values[i] = static_cast<uint8_t>(i * 7 + i / 256);
  return values;
}

// A dense tensor of 4-byte elements.
TensorMap tensorOf(uint64_t address, std::vector<uint32_t> extents, std::vector<uint32_t> box) {
  TensorMap map;
  map.mark = TensorMap::marked;
  map.type = 2;
  map.rank = static_cast<uint8_t>(extents.size());
  map.address = address;
  uint64_t stride = 4;
  for (size_t i = 0; i < extents.size(); ++i) {
    map.lastIndex[i] = extents[i] - 1;
    map.box[i] = static_cast<uint16_t>(box[i]);
    map.steps[i] = 1;
    if (i) map.strides[i - 1] = stride;
    stride *= extents[i];
  }
  return map;
}

std::vector<uint32_t> numbered(size_t count) {
  std::vector<uint32_t> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<uint32_t>(i + 1);
  return values;
}

std::vector<uint32_t> words(const std::vector<uint8_t>& bytes, size_t count) {
  std::vector<uint32_t> values(count);
  std::memcpy(values.data(), bytes.data(), count * 4);
  return values;
}

const char* const coordinates[] = {
    "", "{%c0}", "{%c0, %c1}", "{%c0, %c1, %c2}", "{%c0, %c1, %c2, %c3}", "{%c0, %c1, %c2, %c3, %c4}"};
std::string loadTensor(uint32_t rank, const std::string& mode = "", const std::string& more = "") {
  return "cp.async.bulk.tensor." + std::to_string(rank) + "d.shared::cluster.global" + mode +
         ".mbarrier::complete_tx::bytes [s], [%map, " + coordinates[rank] + "], [bar]" + more + ";\n";
}

}  // namespace

TEST_CASE("cp.async.bulk copies to shared memory and back, and completes its transactions") {
  Bulk device("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s+32], [%in], 4096, [bar];\n" + expect(4096) +
              "cp.async.bulk.global.shared::cta.bulk_group [%io+16], [%s+48], 256;\n"
              "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;");
  const auto source = counting(4096);
  device.in = device.upload(source);
  device.io = device.upload(std::vector<uint8_t>(512));
  const auto result = device.result();
  CHECK(std::vector<uint8_t>(result.begin() + 32, result.begin() + 32 + 4096) == source);
  const auto back = device.download<uint8_t>(device.io, 512);
  CHECK(std::vector<uint8_t>(back.begin() + 16, back.begin() + 272) ==
        std::vector<uint8_t>(source.begin() + 16, source.begin() + 272));
  CHECK(back[15] == 0);
  CHECK(back[272] == 0);
}

TEST_CASE("a bulk copy whose size is no multiple of 16 bytes is misaligned") {
  for (const char* wrong : {"[%s], [%in], 24", "[%s+8], [%in], 16", "[%s], [%in+8], 16"}) {
    Bulk device("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes " + std::string(wrong) + ", [bar];");
    device.in = device.upload(counting(4096));
    const auto fault = device.tried();
    REQUIRE(fault);
    CHECK(fault->kind == Fault::Kind::misalignedAddress);
  }
}

TEST_CASE("cp.reduce.async.bulk combines old and new values element by element") {
  struct Row {
    const char* operation;
    uint32_t there, comes, result;
  };
  const Row rows[] = {{"add.u32", 5, 0xffffffff, 4},
                      {"min.s32", 5, 0xfffffff0, 0xfffffff0},
                      {"max.u32", 5, 0xfffffff0, 0xfffffff0},
                      {"inc.u32", 5, 5, 0},
                      {"dec.u32", 0, 9, 9},
                      {"and.b32", 0xff00ff, 0x0f0f0f, 0x0f000f},
                      {"or.b32", 0xf0, 0x0f, 0xff},
                      {"xor.b32", 0xff, 0x0f, 0xf0},
                      {"add.noftz.f16", 0x3c004000, 0x3c003c00, 0x40004200},  // 1 + 1, 2 + 1
                      {"min.f16", 0x3c00c000, 0x40003c00, 0x3c00c000},        // of 1 and 2, -2 and 1
                      {"max.bf16", 0x3f80c000, 0x40003f80, 0x40003f80},
                      {"add.f32", 0x3fc00000, 0x40200000, 0x40800000}};  // 1.5 + 2.5
  for (const Row& row : rows) {
    CAPTURE(row.operation);
    Bulk device("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%in], 64, [bar];\n" + expect(64) +
                "cp.reduce.async.bulk.global.shared::cta.bulk_group." + row.operation + " [%io], [%s], 64;");
    device.in = device.upload(std::vector<uint32_t>(16, row.comes));
    device.io = device.upload(std::vector<uint32_t>(16, row.there));
    device.result();
    CHECK(device.download<uint32_t>(device.io, 16) == std::vector<uint32_t>(16, row.result));
  }
}

TEST_CASE("tensors of one to five dimensions are copied box by box, with zeros outside of the tensor") {
  const std::vector<uint32_t> extents{12, 5, 4, 3, 2}, box{8, 3, 2, 2, 2};
  for (uint32_t rank = 1; rank <= 5; ++rank)
    for (const int32_t shift : {0, -4, 8}) {
      const std::vector<uint32_t> sizes(extents.begin(), extents.begin() + rank), boxes(box.begin(), box.begin() + rank);
      uint32_t count = 1, taken = 1;
      for (uint32_t i = 0; i < rank; ++i) count *= sizes[i], taken *= boxes[i];
      Bulk device(loadTensor(rank, ".tile") + expect(taken * 4));
      device.in = device.upload(numbered(count));
      device.use(tensorOf(device.in, sizes, boxes));
      const std::array<int32_t, 5> at{shift, shift / 2, 1, shift == 8 ? 2 : 0, 0};
      std::vector<uint32_t> expected(taken);
      for (uint32_t e = 0; e < taken; ++e) {
        uint32_t left = e, index = 0, scale = 1;
        bool inside = true;
        for (uint32_t i = 0; i < rank; ++i) {
          const int64_t place = at[i] + int64_t{left % boxes[i]};
          left /= boxes[i];
          inside &= place >= 0 && place < sizes[i];
          index += static_cast<uint32_t>(place) * scale;
          scale *= sizes[i];
        }
        expected[e] = inside ? index + 1 : 0;
      }
      CAPTURE(rank);
      CAPTURE(shift);
      CHECK(words(device.result(at), taken) == expected);
    }
}

TEST_CASE("a tensor's box is stored without the part outside of the tensor, or added to the existing values") {
  for (const bool adds : {false, true}) {
    const std::string store = adds ? "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
                                   : "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group";
    Bulk device("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [%in], 128, [bar];\n" + expect(128) + store +
                " [%map, {%c0, %c1}], [s];\ncp.async.bulk.commit_group; cp.async.bulk.wait_group 0;");
    device.in = device.upload(numbered(32));
    device.io = device.upload(std::vector<uint32_t>(12 * 5, 1000));
    device.use(tensorOf(device.io, {12, 5}, {8, 4}));
    device.result({8, 3});
    const auto result = device.download<uint32_t>(device.io, 60);
    for (int32_t y = 0; y < 5; ++y)
      for (int32_t x = 0; x < 12; ++x) {
        const bool inside = x >= 8 && y >= 3;
        const auto value = static_cast<uint32_t>((y - 3) * 8 + x - 8 + 1);
        CHECK(result[static_cast<size_t>(y * 12 + x)] == (inside ? value + (adds ? 1000 : 0) : 1000));
      }
  }
}

// As measured on an H100 (docs/facts.md).
TEST_CASE("a box begins at a multiple of 16 bytes of its row, and a stored box not before the tensor") {
  struct Case {
    uint8_t type;  // 2: u32, 4: u64, 6: f16
    std::array<int32_t, 5> at;
    bool loads, stores;
  };
  const Case cases[] = {{2, {4, 1}, true, true},    {2, {24, 6}, true, true},   {2, {-4, -1}, true, false},
                        {2, {0, -1}, true, false},  {2, {-8, 0}, true, false},  {2, {1, 0}, false, false},
                        {2, {-2, 0}, false, false}, {2, {22, 6}, false, false}, {6, {8, 0}, true, true},
                        {6, {4, 0}, false, false},  {4, {2, 0}, true, true},    {4, {1, 0}, false, false}};
  for (const Case& each : cases)
    for (const std::string& copy :
         {loadTensor(2) + expect(8 * 2 * tensorElements[each.type].bytes),
          std::string("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {%c0, %c1}], [s];\n"),
          std::string("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%map, {%c0, %c1}], [s];\n")}) {
      CAPTURE(copy);
      CAPTURE(each.at[0]);
      CAPTURE(each.at[1]);
      Bulk device(copy);
      device.in = device.upload(numbered(64 * 4));
      TensorMap map = tensorOf(device.in, {20, 4}, {8, 2});
      map.type = each.type;
      device.use(map);
      const auto fault = device.tried(each.at);
      const bool isLoad = copy.find("shared::cluster") != std::string::npos;
      REQUIRE(fault.has_value() == !(isLoad ? each.loads : each.stores));
      if (fault) CHECK(fault->kind == Fault::Kind::illegalInstruction);
    }
}

TEST_CASE("a swizzle permutes the 16-byte units of a row by the row's number") {
  for (uint32_t mode = 0; mode < 4; ++mode) {
    const uint32_t span = mode ? 16u << mode : 128, elements = span / 4;
    Bulk device(loadTensor(2) + expect(span * 16));
    device.in = device.upload(numbered(64 * 16));
    TensorMap map = tensorOf(device.in, {64, 16}, {elements, 16});
    map.swizzle = static_cast<uint8_t>(mode);
    device.use(map);
    const auto result = words(device.result({4, 0}), elements * 16);
    uint32_t wrong = 0;
    for (uint32_t y = 0; y < 16; ++y)
      for (uint32_t x = 0; x < elements; ++x) {
        const uint32_t byte = y * span + x * 4, rowOfPattern = byte / 128 % 8;
        const uint32_t unit = byte / 16 % (span / 16) ^ (mode ? rowOfPattern % (span / 16) : 0);
        wrong += result[(byte / span * span + unit * 16 + byte % 16) / 4] != y * 64 + x + 4 + 1;
      }
    CAPTURE(mode);
    CHECK(wrong == 0);
  }
}

TEST_CASE("a tensor's element strides skip elements, and its fill is zero or a NaN") {
  Bulk device(loadTensor(2) + expect(8 * 2 * 4));
  device.in = device.upload(numbered(12 * 9));
  TensorMap map = tensorOf(device.in, {12, 9}, {8, 4});
  map.type = 7;
  map.steps[1] = 2;
  map.fillsNan = true;
  device.use(map);
  const auto result = words(device.result({8, 6}), 16);
  for (uint32_t y = 0; y < 2; ++y)
    for (uint32_t x = 0; x < 8; ++x) CHECK(result[y * 8 + x] == (x < 4 ? (6 + 2 * y) * 12 + 8 + x + 1 : 0x7ff77ff7));
}

TEST_CASE("im2col takes pixels in sequence from the box between its corners") {
  // A 3 x 3 filter with a padding of 1 over images of 6 x 4, at the filter's element (2, 1), eight of ten channels.
  constexpr int32_t channels = 10, width = 6, height = 4, images = 2, padding = 1;
  for (const int32_t step : {1, 2}) {
    Bulk device("mov.b16 %h0, 2; mov.b16 %h1, 1;\n" + loadTensor(4, ".im2col", ", {%h0, %h1}") + expect(20 * 8 * 4));
    device.in = device.upload(numbered(12 * width * height * images));
    TensorMap map = tensorOf(device.in, {12, width, height, images}, {8, 20, 1, 1});
    map.lastIndex[0] = channels - 1;
    map.mode = TensorMap::Mode::imageToColumn;
    for (uint32_t i = 0; i < 2; ++i)
      map.lower[i] = -padding, map.upper[i] = padding - 2, map.steps[i + 1] = static_cast<uint8_t>(step);
    device.use(map);
    const auto result = words(device.result({4, 1, 0, 0}), 160);
    int32_t w = 1, h = 0, n = 0;
    for (size_t pixel = 0; pixel < 20; ++pixel) {
      for (int32_t c = 0; c < 8; ++c) {
        const int32_t x = w + 2, y = h + 1;
        const bool inside = c + 4 < channels && x >= 0 && x < width && y >= 0 && y < height && n < images;
        const int32_t index = ((n * height + y) * width + x) * 12 + c + 4;
        CHECK(result[pixel * 8 + static_cast<size_t>(c)] == (inside ? static_cast<uint32_t>(index + 1) : 0));
      }
      if ((w += step) <= width - 1 + padding - 2) continue;
      w = -padding;
      if ((h += step) <= height - 1 + padding - 2) continue;
      h = -padding;
      ++n;
    }
  }
}

TEST_CASE("a copy to several blocks of a cluster reaches each of them and its barrier") {
  for (const bool tensor : {false, true}) {
    const std::string copy = tensor ? "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
                                      "cluster [s+128], [%map, {%c0}], [bar], %h0;\n"
                                    : "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                                      "[%s+128], [%in], 64, [bar], %h0;\n";
    Bulk device(
        "mov.b16 %h0, 6; mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0; barrier.cluster.arrive; "
        "barrier.cluster.wait;\n@%p1 " +
        copy + "@%p1 bra LAST;\n" + "setp.eq.u32 %p1, %r1, 3; @%p1 bra LAST;\n" + expect(64) + R"(
      ld.shared.u32 %r2, [%s+132]; mul.wide.u32 %x0, %r1, 4; add.u64 %x0, %io, %x0; st.global.u32 [%x0], %r2; bra.uni END;
    LAST:
      ld.shared.u32 %r2, [%s+132]; add.u32 %r2, %r2, 70;
      mul.wide.u32 %x0, %r1, 4; add.u64 %x0, %io, %x0; st.global.u32 [%x0], %r2;
    END:
      barrier.cluster.arrive; barrier.cluster.wait;)");
    device.in = device.upload(numbered(32));
    device.io = device.upload(std::vector<uint32_t>(4));
    device.use(tensorOf(device.in, {32}, {16}));
    device.launch.cluster = {4, 1, 1};
    device.launch.explicitCluster = true;
    const auto fault = device.tryLaunch("k", {{4, 1, 1}, {1, 1, 1}}, device.in, device.io, device.map, device.out, 0, 0, 0, 0, 0);
    if (fault) FAIL(fault->report);
    CHECK(device.download<uint32_t>(device.io, 4) == std::vector<uint32_t>{70, 2, 2, 70});
  }
}

TEST_CASE("st.async and red.async complete transactions of another block's barrier") {
  Bulk device(R"(
    mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1; mov.u32 %r3, bar; mapa.shared::cluster.u32 %r4, %r3, %r2;
    mapa.shared::cluster.u32 %r5, %s, %r2; mov.u32 %r7, 40; st.shared.u32 [%s+8], %r7;
    barrier.cluster.arrive; barrier.cluster.wait;
    add.u32 %r6, %r1, 5; st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r5], {%r6, %r6}, [%r4];
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r5+8], %r6, [%r4];
  )" + expect(12) +
              R"(
    ld.shared.v2.u32 {%r2, %r3}, [%s]; ld.shared.u32 %r4, [%s+8]; add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4;
    mul.wide.u32 %x0, %r1, 4; add.u64 %x0, %io, %x0; st.global.u32 [%x0], %r2; barrier.cluster.arrive; barrier.cluster.wait;)");
  device.io = device.upload(std::vector<uint32_t>(2));
  device.launch.cluster = {2, 1, 1};
  device.launch.explicitCluster = true;
  const auto fault = device.tryLaunch("k", {{2, 1, 1}, {1, 1, 1}}, device.in, device.io, device.map, device.out, 0, 0, 0, 0, 0);
  if (fault) FAIL(fault->report);
  CHECK(device.download<uint32_t>(device.io, 2) == std::vector<uint32_t>{6 * 3 + 40, 5 * 3 + 40});
}

TEST_CASE("a kernel changes fields of a tensor map in shared memory and publishes it") {
  Bulk device(R"(
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s+1024], [%map], 128, [bar];
    mov.u32 %r1, 6; mov.u64 %x2, 64; add.u64 %x1, %in, 64;
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%s+1024], %x1;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%s+1024], 0, %r1;
    tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%s+1024], 0, %x2;
    tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%s+1024], 1, 3;
    tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%s+1024], 1;
    tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%s+1024], 7;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%map], [%s+1024], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%map], 128;
  )" + loadTensor(2) +
              expect(128 + 8 * 3 * 4));
  device.in = device.upload(numbered(16 * 8));
  device.use(tensorOf(0x10, {8, 4}, {8, 1}));
  const auto result = words(device.result({0, 2}), 24);
  for (uint32_t y = 0; y < 3; ++y)
    for (uint32_t x = 0; x < 8; ++x) CHECK(result[y * 8 + x] == (x < 6 && y < 2 ? 16 + (y + 2) * 16 + x + 1 : 0x7ff77ff7));
}

TEST_CASE("an invalid tensor map, or one of another dimension, is refused when it is used") {
  const auto faultOf = [](const std::string& body, bool marked) {
    Bulk device(body);
    device.in = device.upload(numbered(64));
    TensorMap map = tensorOf(device.in, {8, 8}, {8, 8});
    if (!marked) map.mark = 0;
    device.use(map);
    const auto fault = device.tried();
    REQUIRE(fault);
    return fault->kind;
  };
  CHECK(faultOf(loadTensor(2), false) == Fault::Kind::illegalInstruction);
  CHECK(faultOf(loadTensor(3), true) == Fault::Kind::illegalInstruction);
  CHECK(faultOf("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s+64], [%map, {%c0, %c1}], [bar];",
                true) == Fault::Kind::misalignedAddress);
  CHECK(faultOf("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%map+32, {%c0, %c1}], [bar];",
                true) == Fault::Kind::misalignedAddress);
}

}  // namespace vgpu::emulator
