// Code that PTX allows but compilers do not generate.
#include <bit>

#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

// The four words %o0 to %o3 of each thread after `body`.
std::vector<std::array<uint32_t, 4>> fourWords(const std::string& body, uint32_t threads, const std::string& before = "",
                                               uint32_t dynamicShared = 0) {
  Device device(kernelText(".param .u64 out", R"(
    .reg .pred %p<8>; .reg .b32 %r<16>; .reg .b32 %o<4>; .reg .b64 %d<16>; ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x;
    mul.wide.u32 %d1, %r0, 16; add.u64 %d0, %d0, %d1; mov.b32 %o0, 0; mov.b32 %o1, 0; mov.b32 %o2, 0; mov.b32 %o3, 0;
  )" + body + " st.global.v4.b32 [%d0], {%o0, %o1, %o2, %o3};",
                           before));
  const uint64_t out = device.upload(std::vector<std::array<uint32_t, 4>>(threads));
  device.launch.dynamicSharedBytes = dynamicShared;
  device("k", {{1, 1, 1}, {threads, 1, 1}}, out);
  return device.download<std::array<uint32_t, 4>>(out, threads);
}

using Words = std::array<uint32_t, 4>;

}  // namespace

TEST_CASE("the end of a kernel's or a function's text is a return") {
  const std::string function = ".func (.param .b32 sum) f(.param .b32 a) { .reg .b32 x; ld.param.b32 x, [a]; add.u32 x, x, 5; "
                               "st.param.b32 [sum], x; }";
  const auto result = fourWords("setp.gt.u32 %p0, %r0, 2; @%p0 bra E; { .param .b32 a; .param .b32 q; st.param.b32 [a], %r0; "
                                "call (q), f, (a); ld.param.b32 %o0, [q]; } E:",
                                4, function);
  CHECK(result == std::vector<Words>{{5}, {6}, {7}, {0}});
  Device nothing(".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k() {}\n");
  CHECK_FALSE(nothing.tryLaunch("k", {}));
}

TEST_CASE("vectors of registers are used as a whole and by element") {
  const auto result = fourWords(R"(
    .reg .v4 .b32 v; .reg .v2 .u64 w; mov.v4.u32 v, {%r0, 1, 2, 3}; add.u32 v.y, v.g, 10; mov.b32 v.w, v.x; st.global.v4.b32 [%d0], v;
    { .reg .b32 v; mov.b32 v, 9; add.u32 %r1, v, 0; }
    ld.global.v2.u64 w, [%d0]; mov.b64 {%o0, %o1}, w.y; mov.b64 {_, %o2}, w.x; mov.b32 %o3, %r1;
  )",
                                2);
  CHECK(result == std::vector<Words>{{2, 0, 11, 9}, {2, 1, 11, 9}});
}

TEST_CASE("special registers are vectors of four, and those without a meaning here are zero") {
  Device device(kernelText(".param .u64 out", R"(
    .reg .b32 %r<8>; .reg .b64 %d<4>; mov.v4.u32 {%r0, %r1, %r2, %r3}, %tid; mov.u32 %r4, %envreg3; mov.u32 %r5, %pm0;
    mov.u32 %r6, %nctaid.w; add.u32 %r4, %r4, %r5; add.u32 %r3, %r3, %r6; add.u32 %r3, %r3, %r4; mad.lo.u32 %r6, %r2, 3, %r1;
    mad.lo.u32 %r6, %r6, 2, %r0; mul.wide.u32 %d1, %r6, 16; ld.param.u64 %d0, [out]; add.u64 %d0, %d0, %d1;
    st.global.v4.u32 [%d0], {%r0, %r1, %r2, %r3};
  )"));
  const uint64_t out = device.upload(std::vector<Words>(24));
  device("k", {{1, 1, 1}, {2, 3, 4}}, out);
  const auto result = device.download<Words>(out, 24);
  for (uint32_t i = 0; i < 24; ++i) CHECK(result[i] == Words{i % 2, i / 2 % 3, i / 6, 0});
  const auto sizes = fourWords(".shared .b8 s[100]; st.shared.b8 [s], %r0; mov.u32 %o0, %total_smem_size; mov.u32 %o1, "
                               "%dynamic_smem_size;",
                               1, "", 29);
  CHECK(sizes[0] == Words{256, 29});  // 112 and 29, in units of 128
}

TEST_CASE("barriers with a thread count treat a partial warp as a whole one, and count its threads only") {
  const auto result = fourWords(R"(
    setp.lt.u32 %p0, %r0, 50; bar.red.popc.u32 %o0, 0, 64, %p0; bar.red.and.pred %p1, 1, 64, %p0; selp.b32 %o1, 1, 0, %p1;
    setp.ne.u32 %p2, %r0, 49; bar.red.popc.u32 %o2, 2, 64, %p2; bar.red.and.pred %p3, 3, 64, %p2; selp.b32 %o3, 1, 0, %p3;
  )",
                                50);
  for (const Words& each : result) CHECK(each == Words{50, 1, 49, 0});
  // Diverged lanes together make up the whole warp.
  const auto apart = fourWords(R"(
    and.b32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 0; mov.b32 %o0, 1; @%p0 bra A; barrier.sync 1, 64; bra B; A: barrier.sync 1, 64; B:
  )",
                               50);
  for (const Words& each : apart) CHECK(each == Words{1});
}

TEST_CASE("an address in no window is global, mapped or not") {
  const auto result = fourWords(R"(
    .shared .b32 s; .local .b32 l; mov.b64 %d2, out; cvta.param.u64 %d2, %d2; isspacep.global %p0, %d2; selp.b32 %o0, 1, 0, %p0;
    isspacep.param %p1, %d2; selp.b32 %r1, 2, 0, %p1; or.b32 %o0, %o0, %r1; isspacep.global %p2, -1; selp.b32 %o1, 1, 0, %p2;
    mov.u64 %d3, s; cvta.shared.u64 %d3, %d3; isspacep.global %p3, %d3; selp.b32 %o2, 1, 0, %p3;
    mov.u64 %d4, l; cvta.local.u64 %d4, %d4; isspacep.global %p4, %d4; selp.b32 %o3, 1, 0, %p4;
  )",
                                1);
  CHECK(result[0] == Words{3, 1, 0, 0});
}

TEST_CASE("variables of the same name in several scopes of a function are distinct") {
  const auto result = fourWords(R"(
    { .shared .b32 v[4]; mov.b32 %r1, 7; st.shared.b32 [v], %r1;
      { .shared .b32 v[64]; mov.b32 %r1, 8; st.shared.b32 [v], %r1; st.shared.b32 [v+252], %r1; }
      ld.shared.b32 %o0, [v]; }
    { .shared .b32 v[256]; .shared .b32 w; mov.b32 %r1, 9; st.shared.b32 [w], %r1; st.shared.b32 [v+1020], %r0; ld.shared.b32 %o1, [w]; }
    { .const .b32 c = 3; ld.const.b32 %o2, [c]; }
    { .global .b32 c = 4; ld.global.b32 %r2, [c]; }
    { .global .b32 c = 5; ld.global.b32 %o3, [c]; mad.lo.u32 %o3, %o3, 10, %r2; }
  )",
                                1);
  CHECK(result[0] == Words{7, 9, 3, 54});
}

TEST_CASE("div.approx gives zero for a divisor above 2^126, and NaN for infinity divided by one") {
  const auto result = fourWords(R"(
    .reg .f32 %f<4>; div.approx.f32 %f0, 0fC0400000, 0f7E800001; div.approx.ftz.f32 %f1, 0f7F800000, 0f7F7FFFFF;
    div.approx.f32 %f2, 0f7F000000, 0f7E800000; div.full.f32 %f3, 0f7F000000, 0f7F000000;
    mov.b32 %o0, %f0; mov.b32 %o1, %f1; mov.b32 %o2, %f2; mov.b32 %o3, %f3;
  )",
                                1);
  CHECK(result[0] == Words{0x80000000, 0x7fffffff, std::bit_cast<uint32_t>(2.0f), std::bit_cast<uint32_t>(1.0f)});
}

TEST_CASE("stack addresses may have 32 bits") {
  const auto result = fourWords(R"(
    stacksave.u32 %r1; alloca.u32 %r2, 16; alloca.u32 %r3, %r0, 64; st.local.b32 [%r2+4], 7; ld.local.b32 %o0, [%r2+4];
    and.b32 %o1, %r3, 63; stackrestore.u32 %r1; stacksave.u32 %r4; sub.u32 %o2, %r4, %r1; sub.u32 %r5, %r3, %r2; setp.ge.u32 %p0, %r5, 16;
    isspacep.global %p1, %r0; selp.b32 %o3, 1, 0, %p0; @%p1 add.u32 %o3, %o3, 2;
  )",
                                2);
  CHECK(result == std::vector<Words>(2, {7, 0, 0, 3}));
}

TEST_CASE("a kernel has no more registers than its directives allow: as ptxas of CUDA 13.0 reports for 9.0 and a kernel that needs 104") {
  std::string body = ".reg .f32 %f<100>; .reg .b64 %d; ld.param.u64 %d, [out];\n";
  for (int i = 0; i < 100; ++i) body += "ld.global.f32 %f" + std::to_string(i) + ", [%d+" + std::to_string(4 * i) + "];\n";
  for (int i = 0; i < 100; ++i) body += "st.global.f32 [%d+" + std::to_string(400 - 4 * i) + "], %f" + std::to_string(i) + ";\n";
  const auto registers = [&](const std::string& directives) {
    const std::string head = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) ";
    Device device(head + directives + " {\n" + body + "}\n");
    return attributesOf(*device.module->findKernel("k")).registers;
  };
  const uint32_t needed = registers("");
  CHECK(needed >= 100);
  CHECK(registers(".maxntid 64, 1, 1") == needed);
  CHECK(registers(".maxntid 1024, 1, 1") == 64);
  CHECK(registers(".reqntid 32, 32") == 64);
  CHECK(registers(".maxntid 256, 1, 1 .minnctapersm 4") == 64);
  CHECK(registers(".maxntid 200, 1, 1\n.minnctapersm 3") == 80);
  CHECK(registers(".maxnreg 40") == 40);
}

TEST_CASE("a kernel may have a pragma of its own, and a variable attributes with numbers") {
  Device device(R"(.version 9.0
.target sm_90
.address_size 64
.global .attribute(.unified(19, 95)) .b32 v = 3;
.visible .entry k(.param .u64 out) .maxntid 32, 1, 1 .pragma "nounroll"; {
  .reg .b32 %r; .reg .b64 %d; ld.param.u64 %d, [out]; ld.global.b32 %r, [v]; st.global.b32 [%d], %r;
})");
  const uint64_t out = device.upload(std::vector<uint32_t>(1));
  device("k", {{1, 1, 1}, {1, 1, 1}}, out);
  CHECK(device.download<uint32_t>(out, 1)[0] == 3);
}

TEST_CASE("products of matrices of doubles are rounded as mma and wmma specify") {
  // 1 plus or minus a small number: from both sides the nearest double is 1.
  const std::string body = R"(
    .reg .f64 %a, %b, %c<4>; and.b32 %r1, %r0, 3; setp.eq.u32 %p0, %r1, 0; mov.f64 %b, 0d3FF0000000000000; mov.f64 %c0, %b; mov.f64 %c1, %b;
    selp.f64 %a, SMALL, 0d0000000000000000, %p0; INSTRUCTION {%c2, %c3}, {%a}, {%b}, {%c0, %c1};
    mov.b64 {%o0, %o1}, %c2; mov.b64 {%o2, %o3}, %c3;
  )";
  const auto product = [&](const std::string& instruction, const std::string& small) {
    std::string text = body;
    text.replace(text.find("SMALL"), 5, small);
    text.replace(text.find("INSTRUCTION"), 11, instruction);
    const auto words = fourWords(text, 32);
    for (const Words& each : words) CHECK((each[0] == each[2] && each[1] == each[3]));
    return uint64_t{words[5][1]} << 32 | words[5][0];
  };
  const uint64_t one = 0x3ff0000000000000;
  struct Expected {
    const char* rounding;
    uint64_t above, below;
  };
  for (const Expected& each : {Expected{"", one, one}, Expected{".rn", one, one}, Expected{".rz", one, one - 1},
                               Expected{".rm", one, one - 1}, Expected{".rp", one + 1, one}}) {
    CAPTURE(std::string(each.rounding));
    const std::string types = std::string(each.rounding) + ".f64.f64.f64.f64";
    for (const std::string& instruction : {"mma.sync.aligned.m8n8k4.row.col" + types, "wmma.mma.sync.aligned.row.col.m8n8k4" + types}) {
      CHECK(product(instruction, "0d3C30000000000000") == each.above);
      CHECK(product(instruction, "0dBC30000000000000") == each.below);
    }
  }
}

}  // namespace vgpu::emulator
