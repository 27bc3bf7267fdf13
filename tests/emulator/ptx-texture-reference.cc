// Instructions that name a texture or surface reference of the module instead of an object's handle.
#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

class Bound : public ImageViews {
 public:
  std::map<uint64_t, ImageView> views;
  const ImageView* find(uint64_t handle) const override {
    const auto found = views.find(handle);
    return found == views.end() ? nullptr : &found->second;
  }
  bool isReference(uint64_t handle) const override { return handle != object && find(handle) != nullptr; }
  static constexpr uint64_t object = 1;
};

constexpr std::string_view variables = ".global .texref tex; .global .texref other; .global .surfref surf;";

struct References : Device {
  explicit References(const std::string& instructions)
      : Device(kernelText(".param .u64 out", R"(
    .reg .b32 %r<4>; .reg .f32 %f<8>; .reg .b64 %o; ld.param.u64 %o, [out];
    mov.u32 %r0, 0; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0;
  )" + instructions + R"(
    st.global.v4.u32 [%o], {%r0, %r1, %r2, %r3}; ret;)", variables)) {
    launch.images = &bound;
  }
  // Binds `values`, in rows of `width` words, to the variable.
  ImageView& bind(std::string_view name, const std::vector<uint32_t>& values, uint32_t width) {
    ImageView& view = bound.views[variable(name)];
    view.format = {ElementFormat::Kind::unsignedInteger, 4, 1};
    view.levels = {{upload(values), width, static_cast<uint32_t>(values.size()) / width, 1, uint64_t{width} * 4, 0}};
    return view;
  }
  std::vector<uint32_t> result() {
    const uint64_t out = upload(std::vector<uint32_t>(4, 99));
    const auto fault = tryLaunch("k", {{1, 1, 1}, {1, 1, 1}}, out);
    if (fault) FAIL(fault->report);
    return download<uint32_t>(out, 4);
  }
  Bound bound;
};

// The error of decoding a kernel with these instructions.
std::string refusalOf(const std::string& instructions, PtxError::Kind& kind) {
  References references(instructions);
  try {
    references.module->findKernel("k");
  } catch (const PtxError& error) {
    kind = error.kind;
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("tex, tld4 and txq read what is bound to the reference that they name") {
  References references(R"(
    tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [tex, {2}];
    tex.2d.v4.u32.f32 {%r1, %r2, %r3, %r3}, [other, {0f3f800000, 0f3f800000}];
    txq.width.b32 %r2, [tex];
    tld4.r.2d.v4.u32.f32 {%r3, _, _, _}, [other, {0f3f800000, 0f3f800000}];)");
  references.bind("tex", {10, 11, 12, 13}, 4).line = true;
  references.bind("other", {20, 21, 22, 23, 24, 25}, 3);
  CHECK(references.result() == std::vector<uint32_t>{12, 24, 4, 23});
}

TEST_CASE("suld, sust, sured and suq use the surface reference that they name") {
  References references(R"(
    suld.b.2d.b32.trap {%r0}, [surf, {4, 1}];
    sust.b.2d.b32.trap [surf, {8, 0}], {%r0};
    sured.b.add.2d.u32.trap [surf, {8, 0}], 5;
    suld.b.2d.b32.trap {%r1}, [surf, {8, 0}];
    suq.width.b32 %r2, [surf]; suq.height.b32 %r3, [surf];)");
  references.bind("surf", {1, 2, 3, 4, 5, 6}, 3).surface = true;
  CHECK(references.result() == std::vector<uint32_t>{5, 10, 3, 2});
}

TEST_CASE("istypep gives the type of the reference at an address, and false for an object or other memory") {
  References references(R"(
    .reg .pred %p<3>; .reg .b64 %a<4>; .reg .b32 %b;
    mov.u64 %a0, tex; mov.u64 %a1, surf; mov.u64 %a2, 1; add.u64 %a3, %o, 0;
    istypep.texref %p0, %a0; istypep.surfref %p1, %a0; istypep.samplerref %p2, %a0;
    selp.b32 %r0, 1, 0, %p0; selp.b32 %b, 2, 0, %p1; or.b32 %r0, %r0, %b; selp.b32 %b, 4, 0, %p2; or.b32 %r0, %r0, %b;
    istypep.texref %p0, %a1; istypep.surfref %p1, %a1; istypep.samplerref %p2, %a1;
    selp.b32 %r1, 1, 0, %p0; selp.b32 %b, 2, 0, %p1; or.b32 %r1, %r1, %b; selp.b32 %b, 4, 0, %p2; or.b32 %r1, %r1, %b;
    istypep.texref %p0, %a2; selp.b32 %r2, 1, 0, %p0;
    istypep.texref %p0, %a3; selp.b32 %r3, 1, 0, %p0;)");
  references.bind("tex", {1}, 1);
  references.bind("surf", {1}, 1).surface = true;
  references.bound.views[Bound::object] = references.bound.views[references.variable("tex")];
  CHECK(references.result() == std::vector<uint32_t>{1, 2, 0, 0});
}

TEST_CASE("a reference with nothing bound reads as zeros, and writes to it are lost") {
  References references(R"(
    tex.2d.v4.u32.f32 {%r0, %r1, %r2, %r3}, [tex, {0f3f800000, 0f3f800000}];
    tld4.r.2d.v4.u32.f32 {%r1, _, _, _}, [tex, {0f3f800000, 0f3f800000}];
    sust.b.2d.b32.trap [surf, {0, 0}], {7};
    suld.b.2d.b32.trap {%r2}, [surf, {0, 0}];
    suq.width.b32 %r3, [surf];)");
  references.bound.views[references.variable("tex")].levels = {{.width = 0, .height = 0, .slices = 0}};
  ImageView& surface = references.bound.views[references.variable("surf")];
  surface.levels = {{.width = 0, .height = 0, .slices = 0}};
  surface.surface = true;
  CHECK(references.result() == std::vector<uint32_t>{0, 0, 0, 0});
}

TEST_CASE("a reference of the wrong kind, or one that the module lacks, is refused") {
  PtxError::Kind kind{};
  CHECK(refusalOf("tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [surf, {2}];", kind).find("'surf' is not a .texref") != std::string::npos);
  CHECK(kind == PtxError::Kind::invalid);
  CHECK(refusalOf("suq.width.b32 %r2, [tex];", kind).find("'tex' is not a .surfref") != std::string::npos);
  CHECK(kind == PtxError::Kind::invalid);
  CHECK(refusalOf("tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [none, {2}];", kind).find("neither a register nor a reference") !=
        std::string::npos);
  CHECK(kind == PtxError::Kind::unsupported);
}

TEST_CASE("a sampler separate from its texture is refused by name") {
  PtxError::Kind kind{};
  CHECK(refusalOf("tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [tex, other, {2}];", kind).find("a sampler separate from its texture") !=
        std::string::npos);
  CHECK(kind == PtxError::Kind::unsupported);
}

}  // namespace vgpu::emulator
