// Textures and surfaces: compared with what a real GPU reads, and the edges of surfaces.
#include "ptx-fixture.h"
#include "stub/emulator/ptx/lanes/half-values.h"
#include "texture-cases.h"

namespace vgpu::emulator {
namespace {

// The image objects of a test; handles start at 1.
class TestViews : public ImageViews {
 public:
  uint64_t add(ImageView view) {
    views.push_back(std::move(view));
    return views.size();
  }
  const ImageView* find(uint64_t handle) const override {
    return handle >= 1 && handle <= views.size() ? &views[handle - 1] : nullptr;
  }
  bool isReference(uint64_t) const override { return false; }

 private:
  std::vector<ImageView> views;
};

ElementGrid gridAt(uint64_t address, int width, int height, int slices, uint32_t element) {
  ElementGrid grid{.address = address};
  grid.width = static_cast<uint32_t>(width);
  grid.height = static_cast<uint32_t>(std::max(height, 1));
  grid.slices = static_cast<uint32_t>(std::max(slices, 1));
  grid.pitch = uint64_t{grid.width} * element;
  grid.slicePitch = grid.pitch * grid.height;
  return grid;
}

ImageView viewOf(const TextureCase& c, uint64_t address) {
  const TextureFormat& format = formatOf(c);
  ImageView view;
  view.format = {static_cast<ElementFormat::Kind>(format.kind), static_cast<uint8_t>(format.channelBytes),
                 static_cast<uint8_t>(format.channels)};
  view.levels = {gridAt(address, c.width, c.height, c.slices, view.format.bytes())};
  view.addressing.fill(static_cast<Addressing>(c.addressing));
  for (int channel = 0; channel < 4; ++channel) view.border[channel] = borderOf(c, channel);
  view.linear = c.linear != 0;
  view.normalized = c.normalized;
  view.fractions = format.kind != 2;
  return view;
}

// k(texture, in, out): thread t reads the texture at the coordinates at in + 16 t and writes four channels to out + 16 t.
std::string textureKernel(const std::string& instructions) {
  return kernelText(".param .u64 texture, .param .u64 in, .param .u64 out", R"(
    .reg .f32 %x, %y, %z, %w, %f<4>; .reg .b32 %r, %n, %t, %last, %c<4>; .reg .b64 %h, %i, %o, %a; .reg .pred %p;
    ld.param.u64 %h, [texture]; ld.param.u64 %i, [in]; ld.param.u64 %o, [out];
    mov.u32 %r, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %r, %r, %n, %t; mul.wide.u32 %a, %r, 16;
    add.u64 %i, %i, %a; add.u64 %o, %o, %a; ld.global.v4.f32 {%x, %y, %z, %w}, [%i]; cvt.rzi.s32.f32 %last, %w;
  )" + instructions + R"(
    st.global.v4.f32 [%o], {%f0, %f1, %f2, %f3}; ret;
  )");
}

std::string instructionFor(const TextureCase& c) {
  const std::string into = " {%f0, %f1, %f2, %f3}, [%h, {";
  if (c.geometry == "1d") return "tex.1d.v4.f32.f32" + into + "%x}];";
  if (c.geometry == "2d") return "tex.2d.v4.f32.f32" + into + "%x, %y}];";
  if (c.geometry == "3d") return "tex.3d.v4.f32.f32" + into + "%x, %y, %z, %z}];";
  if (c.geometry == "a1d") return "tex.a1d.v4.f32.f32" + into + "%last, %x}];";
  if (c.geometry == "a2d") return "tex.a2d.v4.f32.f32" + into + "%last, %x, %y, %y}];";
  std::string gathers;
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i);
    gathers += "setp.eq.s32 %p, %last, " + number + "; @%p tld4." + std::string(1, "rgba"[i]) + ".2d.v4.f32.f32" +
               into + "%x, %y}];\n";
  }
  return gathers;
}

// A surface of 5 x 3 words of 4 bytes, numbered from 100, in its own memory.
struct SurfaceTest {
  explicit SurfaceTest(const std::string& instructions)
      : device(kernelText(".param .u64 surface, .param .u64 in, .param .u64 out", R"(
    .reg .b32 %x, %y, %z, %v, %w, %t; .reg .b64 %h, %i, %o, %a;
    ld.param.u64 %h, [surface]; ld.param.u64 %i, [in]; ld.param.u64 %o, [out];
    mov.u32 %t, %tid.x; mul.wide.u32 %a, %t, 8; add.u64 %i, %i, %a; add.u64 %o, %o, %a;
    ld.global.v2.u32 {%x, %y}, [%i]; mov.u32 %z, 0; mov.u32 %v, 0; mov.u32 %w, 0;
  )" + instructions + "st.global.v2.u32 [%o], {%v, %w}; ret;")) {
    std::vector<uint32_t> words(15);
    for (uint32_t i = 0; i < 15; ++i) words[i] = 100 + i;
    address = device.upload(words);
    ImageView view;
    view.surface = true;
    view.format = {ElementFormat::Kind::unsignedInteger, 4, 1};
    view.levels = {gridAt(address, 5, 3, 0, 4)};
    handle = views.add(view);
    device.launch.images = &views;
  }

  // Runs a thread for each position: x in bytes, and y.
  std::optional<Fault> run(const std::vector<std::array<int, 2>>& places, uint64_t named = 1) {
    const uint64_t in = device.upload(places);
    out = device.upload(std::vector<uint64_t>(places.size()));
    return device.tryLaunch("k", {{1, 1, 1}, {static_cast<uint32_t>(places.size()), 1, 1}}, named, in, out);
  }

  Device device;
  TestViews views;
  uint64_t address = 0, handle = 0, out = 0;
};

}  // namespace

TEST_CASE("textures give the bits that a real GPU gives") {
  for (const TextureCase& c : textureCases) {
    CAPTURE(std::string(c.geometry) + " " + std::string(c.format));
    CAPTURE(c.addressing);
    CAPTURE(c.linear);
    CAPTURE(c.normalized);
    Device device(textureKernel(instructionFor(c)));
    TestViews views;
    const auto elements = textureElements(c, [](float value) { return halfBits(value); });
    const uint64_t texture = views.add(viewOf(c, device.upload(elements)));
    device.launch.images = &views;
    const auto places = texturePlaces(c);
    const uint64_t in = device.upload(places), out = device.upload(std::vector<float>(places.size() * 4));
    device("k", {{static_cast<uint32_t>(places.size()) / 100, 1, 1}, {100, 1, 1}}, texture, in, out);
    CHECK(textureDigest(device.download<float>(out, places.size() * 4)) == c.digest);
  }
}

TEST_CASE("linear memory is fetched by index, and reads as zero beyond its ends") {
  Device device(textureKernel(R"(
    tex.1d.v4.s32.s32 {%c0, %c1, %c2, %c3}, [%h, {%last}];
    mov.b32 %f0, %c0; mov.b32 %f1, %c1; mov.b32 %f2, %c2; mov.b32 %f3, %c3;)"));
  TestViews views;
  ImageView view;
  view.line = true;
  view.format = {ElementFormat::Kind::signedInteger, 2, 2};
  view.levels = {gridAt(device.upload(std::vector<int16_t>{-1, 2, -300, 400, 5, -6}), 3, 0, 0, 4)};
  const uint64_t texture = views.add(view);
  device.launch.images = &views;
  std::vector<std::array<float, 4>> places;
  for (const float index : {0, 1, 2, 3, -1, 1000000}) places.push_back({0, 0, 0, index});
  const uint64_t in = device.upload(places), out = device.upload(std::vector<int32_t>(24));
  device("k", {{1, 1, 1}, {6, 1, 1}}, texture, in, out);
  CHECK(device.download<int32_t>(out, 24) ==
        std::vector<int32_t>{-1, 2, 0, 0, -300, 400, 0, 0, 5, -6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("levels of a mipmapped array are selected, blended and clamped, and all texels are reported as resident") {
  Device device(textureKernel(R"(
    tex.level.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}|%p, [%h, {%x, %y}], %w; selp.f32 %f1, 0f3F800000, 0f00000000, %p;
    tex.2d.v4.f32.f32 {%f2, _, _, _}, [%h, {%x, %y}];
    tex.grad.2d.v4.f32.f32 {%f3, _, _, _}, [%h, {%x, %y}], {%z, %z}, {0f00000000, %z};)"));
  TestViews views;
  ImageView view;
  view.format = {ElementFormat::Kind::floating, 4, 1};
  view.normalized = true;
  view.addressing.fill(Addressing::clamp);
  view.linearMipmap = true;
  view.leastLevel = 0.25f;
  view.mostLevel = 1.75f;
  const uint64_t memory = device.upload(std::vector<float>(16 + 4 + 1));
  uint64_t at = memory;
  for (const int size : {4, 2, 1}) {
    view.levels.push_back(gridAt(at, size, size, 0, 4));
    for (int i = 0; i < size * size; ++i, at += 4) {
      const float value = size == 4 ? 100 : size == 2 ? 200 : 400;
      std::memcpy(device.memory.host(at), &value, 4);
    }
  }
  const uint64_t texture = views.add(view);
  device.launch.images = &views;
  // Derivatives of 1/4, 1/2 and sqrt(2)/4 of the texture are 1, 2 and sqrt(2) texels, times sqrt(2) for both axes.
  const std::vector<std::array<float, 4>> places = {{0.5f, 0.5f, 0.25f, 0},
                                                    {0.5f, 0.5f, 0.5f, 0.5f},
                                                    {0.1f, 0.9f, 0.5f, 1.5f},
                                                    {0.1f, 0.9f, 0, 10},
                                                    {0.5f, 0.5f, 10.0f, -3.0f}};
  const uint64_t in = device.upload(places), out = device.upload(std::vector<float>(20));
  device("k", {{1, 1, 1}, {5, 1, 1}}, texture, in, out);
  const auto got = device.download<float>(out, 20);
  const float levels[] = {125, 150, 300, 350, 125}, gradients[] = {150, 300, 300, 125, 350};
  for (size_t i = 0; i < 5; ++i) {
    CHECK(got[4 * i] == levels[i]);
    CHECK(got[4 * i + 1] == 1);
    CHECK(got[4 * i + 2] == 125);
    CHECK(got[4 * i + 3] == gradients[i]);
  }
}

TEST_CASE("a cube's face is selected by the largest coordinate") {
  Device device(textureKernel("tex.cube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%x, %y, %z, %z}];"));
  TestViews views;
  ImageView view;
  view.format = {ElementFormat::Kind::unsignedInteger, 1, 1};
  view.fractions = true;
  view.normalized = true;
  view.addressing.fill(Addressing::clamp);
  std::vector<uint8_t> faces;  // 2 x 2 each: 51 times the face, and the texel's own number
  for (int face = 0; face < 6; ++face)
    for (int i = 0; i < 4; ++i) faces.push_back(static_cast<uint8_t>(face * 40 + i));
  view.levels = {gridAt(device.upload(faces), 2, 2, 6, 1)};
  const uint64_t texture = views.add(view);
  device.launch.images = &views;
  // On the face of positive x, -z points right and -y down, and so on (CUDA Programming Guide, "Cubemap Textures").
  const std::vector<std::array<float, 4>> places = {{2, 1, 1, 0},  {-2, 1, 1, 0}, {1, 3, 1, 0},
                                                    {1, -3, 1, 0}, {1, 1, 4, 0},  {1, 1, -4, 0}};
  const uint64_t in = device.upload(places), out = device.upload(std::vector<float>(24));
  device("k", {{1, 1, 1}, {6, 1, 1}}, texture, in, out);
  const auto got = device.download<float>(out, 24);
  const int expected[] = {0, 41, 83, 121, 161, 200};
  for (size_t i = 0; i < 6; ++i) CHECK(got[4 * i] == static_cast<float>(expected[i] / 255.0));
}

TEST_CASE("reads outside of a surface give zero or the nearest element, and writes are dropped") {
  SurfaceTest zero("suld.b.2d.b32.zero {%v}, [%h, {%x, %y}]; sust.b.2d.b32.zero [%h, {%x, %y}], {%t};");
  const std::vector<std::array<int, 2>> places = {{0, 0}, {16, 2}, {20, 0}, {-4, 0}, {4, -1}, {0, 3}, {1 << 30, 1}};
  REQUIRE_FALSE(zero.run(places));
  CHECK(zero.device.download<uint64_t>(zero.out, 7) == std::vector<uint64_t>{100, 114, 0, 0, 0, 0, 0});
  const auto left = zero.device.download<uint32_t>(zero.address, 15);
  for (uint32_t i = 0; i < 15; ++i) CHECK(left[i] == (i == 0 ? 0 : i == 14 ? 1 : 100 + i));

  SurfaceTest nearest("suld.b.2d.b32.clamp {%v}, [%h, {%x, %y}]; suld.b.2d.v2.b16.clamp {%z, %w}, [%h, {%x, %y}];");
  REQUIRE_FALSE(nearest.run({{0, 0}, {20, 0}, {-4, 1}, {4, -1}, {8, 9}}));
  CHECK(nearest.device.download<uint64_t>(nearest.out, 5) == std::vector<uint64_t>{100, 104, 105, 101, 112});
}

TEST_CASE("a single coordinate or element needs no braces") {
  SurfaceTest test("suld.b.1d.b32.trap %v, [%h, %x]; sust.b.1d.b32.trap [%h, %x], %t; sured.b.add.1d.u32.trap [%h, %x], 5;");
  REQUIRE_FALSE(test.run({{4, 0}, {0, 0}}));
  CHECK(test.device.download<uint64_t>(test.out, 2) == std::vector<uint64_t>{101, 100});
  CHECK(test.device.download<uint32_t>(test.address, 3) == std::vector<uint32_t>{6, 5, 102});
  Device device(textureKernel("tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, %x];"));
  TestViews views;
  ImageView view;
  view.format = {ElementFormat::Kind::floating, 4, 1};
  view.levels = {gridAt(device.upload(std::vector<float>{3, 4, 5, 6}), 4, 1, 1, 4)};
  const uint64_t texture = views.add(view), in = device.upload(std::vector<float>{2.5f, 0, 0, 0}),
                 out = device.upload(std::vector<float>(4));
  device.launch.images = &views;
  device("k", {{1, 1, 1}, {1, 1, 1}}, texture, in, out);
  CHECK(device.download<float>(out, 1)[0] == 5);
}

TEST_CASE("a surface access of eight bytes across the edge reads zeros, as on a GPU") {
  SurfaceTest test("suld.b.2d.v2.b32.zero {%v, %w}, [%h, {%x, %y}];");
  REQUIRE_FALSE(test.run({{0, 0}, {8, 1}, {16, 2}}));
  CHECK(test.device.download<uint32_t>(test.out, 6) == std::vector<uint32_t>{100, 101, 107, 108, 0, 0});
}

TEST_CASE("accesses at which a GPU traps are faults, named by kind") {
  SurfaceTest test("suld.b.2d.b32.trap {%v}, [%h, {%x, %y}];");
  const auto kindOf = [&](const std::vector<std::array<int, 2>>& places, uint64_t named, const char* says) {
    const auto fault = test.run(places, named);
    REQUIRE(fault);
    CAPTURE(fault->report);
    CHECK(fault->report.find(says) != std::string::npos);
    return fault->kind;
  };
  CHECK_FALSE(test.run({{4, 2}}));
  CHECK(kindOf({{20, 0}}, 1, "an out-of-bounds read of 4 bytes at byte 20, row 0") == Fault::Kind::illegalAddress);
  CHECK(kindOf({{2, 0}}, 1, "misaligned") == Fault::Kind::misalignedAddress);
  CHECK(kindOf({{0, 0}}, 9, "no surface object has the handle 0x9") == Fault::Kind::illegalAddress);
  ImageView texture;
  texture.levels = {ElementGrid{}};
  CHECK(kindOf({{0, 0}}, test.views.add(texture), "no surface object") == Fault::Kind::illegalAddress);
}

TEST_CASE("forms of texture instructions that are not supported are refused by name") {
  for (const char* text : {"tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, %h, {%x, %y}]",
                           "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%x, %y}], %z",
                           "tex.2dms.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%h, {%c0, %c1, %c2, %c3}]",
                           "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [name, {%x, %y}]",
                           "tld4.r.cube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%h, {%x, %y, %z, %z}]",
                           "suld.p.2d.v4.b32.trap {%c0, %c1, %c2, %c3}, [%h, {%c0, %c1}]",
                           "sured.b.add.2d.f32.trap [%h, {%c0, %c1}], %x", "txq.filter_mode.b32 %c0, [%h]"}) {
    CAPTURE(std::string(text));
    Device device(textureKernel(std::string(text) + ";"));
    try {
      device.module->findKernel("k");
      FAIL("accepted");
    } catch (const PtxError& error) {
      CAPTURE(std::string(error.what()));
      CHECK(error.kind == PtxError::Kind::unsupported);
    }
  }
}

}  // namespace vgpu::emulator
