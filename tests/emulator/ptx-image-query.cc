// Queries of textures and surfaces in kernels, atomic operations on surfaces, and texel offsets.
#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

class OneView : public ImageViews {
 public:
  ImageView view;
  const ImageView* find(uint64_t handle) const override { return handle == 1 ? &view : nullptr; }
  bool isReference(uint64_t) const override { return false; }
};

// k(out): one thread, with the object %h, stores eight words of %r to `out`.
struct Image : Device {
  explicit Image(const std::string& instructions)
      : Device(kernelText(".param .u64 out", R"(
    .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .b64 %h, %o, %d; mov.u64 %h, 1; ld.param.u64 %o, [out];
    mov.u32 %r0, 0; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %r5, 0;
    mov.u32 %r6, 0; mov.u32 %r7, 0;
  )" + instructions + R"(
    st.global.v4.u32 [%o], {%r0, %r1, %r2, %r3}; st.global.v4.u32 [%o+16], {%r4, %r5, %r6, %r7}; ret;)")) {
    launch.images = &views;
    views.view.format = {ElementFormat::Kind::floating, 4, 1};
  }
  // Floats numbered from one, row by row, slice by slice.
  void level(uint32_t width, uint32_t height, uint32_t slices, float from = 1) {
    std::vector<float> values(size_t{width} * height * slices);
    for (size_t i = 0; i < values.size(); ++i) values[i] = from + static_cast<float>(i);
    views.view.levels.push_back({upload(values), width, height, slices, uint64_t{width} * 4, uint64_t{width} * height * 4});
  }
  std::vector<uint32_t> result() {
    const uint64_t out = upload(std::vector<uint32_t>(8));
    const auto fault = tryLaunch("k", {{1, 1, 1}, {1, 1, 1}}, out);
    if (fault) FAIL(fault->report);
    return download<uint32_t>(out, 8);
  }
  std::vector<float> floats() {
    const auto words = result();
    std::vector<float> values(words.size());
    std::memcpy(values.data(), words.data(), words.size() * 4);
    return values;
  }
  OneView views;
};

}  // namespace

TEST_CASE("txq returns a texture's extents, levels and format") {
  Image image(R"(
    txq.width.b32 %r0, [%h]; txq.height.b32 %r1, [%h]; txq.depth.b32 %r2, [%h]; txq.num_mipmap_levels.b32 %r3, [%h];
    mov.u32 %r7, 1;
    txq.level.width.b32 %r4, [%h], %r7; txq.level.height.b32 %r5, [%h], 2; txq.channel_data_type.b32 %r6, [%h];
    txq.normalized_coords.b32 %r7, [%h];)");
  image.level(12, 10, 3);
  image.level(6, 5, 1);
  image.views.view.normalized = true;
  CHECK(image.result() == std::vector<uint32_t>{12, 10, 3, 2, 6, 0, 0x10de, 1});
}

TEST_CASE("suq returns a surface's extents and format") {
  Image image(R"(
    suq.width.b32 %r0, [%h]; suq.height.b32 %r1, [%h]; suq.array_size.b32 %r2, [%h]; suq.channel_order.b32 %r3, [%h];
    suq.channel_data_type.b32 %r4, [%h];)");
  image.level(12, 10, 4);
  image.views.view.surface = true;
  image.views.view.format = {ElementFormat::Kind::signedInteger, 2, 2};
  CHECK(image.result() == std::vector<uint32_t>{12, 10, 4, 0x10b2, 0x10d8, 0, 0, 0});
}

TEST_CASE("a query of an object of another kind is an illegal address") {
  Image image("suq.width.b32 %r0, [%h];");
  image.level(4, 4, 1);
  const auto fault = image.tryLaunch("k", {{1, 1, 1}, {1, 1, 1}}, image.upload(std::vector<uint32_t>(8)));
  REQUIRE(fault);
  CHECK(fault->kind == Fault::Kind::illegalAddress);
}

TEST_CASE("a texture is read with texel offsets, at every kind of level") {
  Image image(R"(
    mov.f32 %f4, 0f40200000; mov.f32 %f5, 0f3FC00000; mov.u32 %r0, 2; mov.u32 %r1, -1;
    tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%f4, %f5}], {%r0, %r1}; mov.b32 %r4, %f0;
    mov.f32 %f6, 0f00000000;
    tex.level.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%f4, %f5}], %f6, {-2, 1}; mov.b32 %r5, %f0;
    mov.u32 %r2, 4; mov.u32 %r3, 1; tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%h, {%r2, %r3}], {7, -8}; mov.b32 %r6, %f0;
    tld4.r.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%f4, %f5}], {1, 1}; mov.b32 %r7, %f0;)");
  image.level(8, 6, 1);
  image.views.view.addressing.fill(Addressing::clamp);
  // Texel (2, 1) has number 1 + 8 + 2. With offsets: (4, 0), (0, 2) and, clamped, (7, 0); the gather begins at the upper left of the centre
  // of (3, 2).
  const auto values = image.floats();
  CHECK(values[4] == 5);
  CHECK(values[5] == 17);
  CHECK(values[6] == 8);
  CHECK(values[7] == 1 + 8 * 3 + 3);
}

TEST_CASE("sured combines a surface's element with a value, and ignores coordinates outside") {
  Image image(R"(
    mov.u32 %r0, 8; mov.u32 %r1, 1; mov.u32 %r2, 40;
    sured.b.add.2d.u32.trap [%h, {%r0, %r1}], %r2; sured.b.max.2d.s32.zero [%h, {%r0, -1}], %r2;
    sured.b.min.2d.s32.clamp [%h, {1000, 1000}], -5; sured.b.or.2d.b32.trap [%h, {0, 0}], 0x100; mov.u64 %d, 0x100000001;
    sured.b.add.2d.u64.trap [%h, {8, 0}], %d;)");
  image.level(4, 3, 1);
  image.views.view.surface = true;
  image.views.view.format = {ElementFormat::Kind::unsignedInteger, 4, 1};
  std::vector<uint32_t> words(12);
  for (uint32_t i = 0; i < 12; ++i) words[i] = i + 1;
  image.views.view.levels[0].address = image.upload(words);
  image.result();
  words[0] |= 0x100, words[2] += 1, words[3] += 1, words[6] += 40, words[11] = static_cast<uint32_t>(-5);
  CHECK(image.download<uint32_t>(image.views.view.levels[0].address, 12) == words);
}

TEST_CASE("depth comparison, and forms that surfaces do not have, are refused") {
  for (const char* text : {"tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%f4, %f5}], %f6;",
                           "tld4.r.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%f4, %f5}], %f6;",
                           "tex.cube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%f4, %f5, %f6, %f6}], {%r0, %r1, %r2};",
                           "sured.b.xor.2d.b32.trap [%h, {%r0, %r1}], %r2;", "sured.b.add.1d.f32.trap [%h, {%r0}], %r2;",
                           "suq.num_samples.b32 %r0, [%h];", "txq.memory_layout.b32 %r0, [%h];"}) {
    CAPTURE(text);
    Image image(text);
    CHECK_THROWS(image.module->findKernel("k"));
  }
}

}  // namespace vgpu::emulator
