// Functions with parameters and results in registers, and every kind of argument that a call can have.
#include <bit>

#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

using Results = std::vector<std::array<uint32_t, 2>>;

// The two words %o0 and %o1 of each thread after `body`; %r0 is the thread's number.
Results twoWords(const std::string& before, const std::string& body, uint32_t threads = 4) {
  Device device(kernelText(".param .u64 out", R"(
    .reg .pred %p<8>; .reg .b32 %r<16>; .reg .b32 %o<2>; .reg .b64 %d<16>; .reg .f64 %g<4>; .reg .f32 %f<4>;
    ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 8; add.u64 %d0, %d0, %d1; mov.b32 %o0, 0; mov.b32 %o1, 0;
  )" + body + "\n st.global.v2.b32 [%d0], {%o0, %o1}; ret;",
                           before));
  const uint64_t out = device.upload(Results(threads));
  device.launch.maxInstructions = 1'000'000;
  device("k", {{1, 1, 1}, {threads, 1, 1}}, out);
  return device.download<std::array<uint32_t, 2>>(out, threads);
}

bool isRefused(const std::string& before, const std::string& body) {
  try {
    twoWords(before, body);
  } catch (const PtxError& error) {
    return true;
  }
  return false;
}

// q = 10 a + b, and the same with .param variables.
const std::string inRegisters = ".func (.reg .b32 q) f(.reg .b32 a, .reg .b32 b) { mad.lo.u32 q, a, 10, b; ret; }\n";
const std::string inParameters = R"(.func (.param .b32 q) g(.param .b32 a, .param .b32 b) {
    .reg .b32 x, y; ld.param.u32 x, [a]; ld.param.u32 y, [b]; mad.lo.u32 x, x, 100, y; st.param.b32 [q], x; ret; }
)";

}  // namespace

TEST_CASE("a function may have its parameters and results in registers") {
  const Results ten{{5, 0}, {15, 0}, {25, 0}, {35, 0}};
  CHECK(twoWords(inRegisters, "mov.u32 %r1, 5; call (%o0), f, (%r0, %r1);") == ten);
  CHECK(twoWords(inRegisters, "call (%o0), f, (%r0, 5);") == ten);
  CHECK(twoWords(inRegisters, "{ .param .b32 x; st.param.b32 [x], %r0; call (x), f, (x, 5); ld.param.b32 %o0, [x]; }") == ten);
  // A register may be both argument and result; there may be several results, and one of them may be ignored.
  CHECK(twoWords(inRegisters, "call (%r0), f, (%r0, 5); mov.b32 %o0, %r0;") == ten);
  const std::string two = ".func (.reg .b32 q, .reg .b32 r) f(.reg .b32 a) { add.u32 q, a, 1; add.u32 r, a, 2; }";
  CHECK(twoWords(two, "call (%o0, %o1), f, (%r0);") == Results{{1, 2}, {2, 3}, {3, 4}, {4, 5}});
  CHECK(twoWords(two, "call (_, %o1), f, (7);") == Results(4, {0, 9}));
}

TEST_CASE("a call can pass registers and constants to .param parameters too") {
  const Results hundred{{5, 0}, {105, 0}, {205, 0}, {305, 0}};
  CHECK(twoWords(inParameters, "call (%o0), g, (%r0, 5);") == hundred);
  CHECK(twoWords(inParameters, "{ .param .b32 x; st.param.b32 [x], 5; call.uni (%o0), g, (%r0, x); }") == hundred);
}

TEST_CASE("arguments and results of every size keep their values") {
  const std::string wide = ".func (.reg .f64 q, .reg .b64 r) f(.reg .f64 a, .reg .b64 b, .reg .f32 c, .reg .b32 d) {\n"
                           ".reg .f64 x; cvt.f64.f32 x, c; add.f64 q, a, x; cvt.s64.s32 r, d; add.s64 r, r, b; }";
  CHECK(twoWords(wide, "call (%g0, %d2), f, (2.5, -1, 1.25, -3); mul.f64 %g0, %g0, 4.0; cvt.rzi.u32.f64 %o0, %g0; cvt.u32.u64 %o1, %d2;") ==
        Results(4, {15, static_cast<uint32_t>(-4)}));
  const std::string widest = ".func (.reg .b128 q) f(.reg .b128 a) { .reg .b64 x, y; mov.b128 {x, y}, a; mov.b128 q, {y, x}; }";
  CHECK(twoWords(widest, ".reg .b128 z; mov.b64 %d2, 7; mov.b64 %d3, 9; mov.b128 z, {%d2, %d3}; call (z), f, (z); mov.b128 {%d2, %d3}, z;"
                         "cvt.u32.u64 %o0, %d2; cvt.u32.u64 %o1, %d3;") == Results(4, {9, 7}));
}

TEST_CASE("a predicated call leaves the results of the other threads unchanged") {
  CHECK(twoWords(inRegisters, "mov.b32 %o0, 77; setp.gt.u32 %p0, %r0, 1; @%p0 call (%o0), f, (%r0, 5);") ==
        Results{{77, 0}, {77, 0}, {25, 0}, {35, 0}});
}

TEST_CASE("functions with register parameters can recurse") {
  const std::string factorial = R"(.func (.reg .b32 q) f(.reg .b32 a) {
    .reg .pred p; .reg .b32 b; setp.eq.u32 p, a, 0; @p mov.b32 q, 1; @p ret; sub.u32 b, a, 1; call (q), f, (b); mul.lo.u32 q, q, a; })";
  CHECK(twoWords(factorial, "call (%o0), f, (%r0);", 6) == Results{{1, 0}, {1, 0}, {2, 0}, {6, 0}, {24, 0}, {120, 0}});
}

TEST_CASE("an indirect call takes registers and constants, with a prototype, a list or a table of targets") {
  const std::string other = ".func (.reg .b32 q) h(.reg .b32 a, .reg .b32 b) { sub.u32 q, b, a; }\n";
  const Results both{{5, 0}, {15, 0}, {3, 0}, {2, 0}};
  const std::string choose = "setp.gt.u32 %p0, %r0, 1; mov.u64 %d2, f; @%p0 mov.u64 %d2, h;\n";
  CHECK(twoWords(inRegisters + other, choose + "P: .callprototype (.reg .b32 _) _ (.reg .b32 _, .reg .b32 _);\n"
                                               "call (%o0), %d2, (%r0, 5), P;") == both);
  CHECK(twoWords(inRegisters + other, choose + "P: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _) .abi_preserve 4;\n"
                                               "call (%o0), %d2, (%r0, 5), P;") == both);
  CHECK(twoWords(inRegisters + other, choose + "P: .calltargets f, h; call (%o0), %d2, (%r0, 5), P;") == both);
  const std::string load =
      "setp.gt.u32 %p0, %r0, 1; selp.b32 %r1, 8, 0, %p0; cvt.u64.u32 %d3, %r1; mov.u64 %d4, t; add.u64 %d4, %d4, %d3;\n";
  CHECK(twoWords(inRegisters + other + ".global .u64 t[2] = {f, h};",
                 load + "ld.global.u64 %d2, [%d4]; call (%o0), %d2, (%r0, 5), t;") == both);
  CHECK(twoWords(inRegisters + other,
                 ".const .u64 t[2] = {f, h};\n" + load + "ld.const.u64 %d2, [%d4]; call (%o0), %d2, (%r0, 5), t;") == both);
  // The address need not come from a mov.
  CHECK(twoWords(inRegisters + other, "setp.gt.u32 %p0, %r0, 1; selp.b64 %d2, h, f, %p0; P: .calltargets f, h;"
                                      "call (%o0), %d2, (%r0, 5), P;") == both);
}

TEST_CASE("an indirect call may have neither arguments nor results") {
  const std::string function = ".global .u32 v; .func f { .reg .b32 x; mov.b32 x, 6; st.global.u32 [v], x; }\n.func e .noreturn { exit; }";
  const std::string after = " ld.global.u32 %o0, [v];";
  CHECK(twoWords(function, "mov.u64 %d2, f; P: .callprototype _; call %d2, P;" + after) == Results(4, {6, 0}));
  CHECK(twoWords(function, "mov.u64 %d2, f; P: .callprototype () _ (); call (), %d2, (), P;" + after) == Results(4, {6, 0}));
  CHECK(twoWords(function, "setp.ne.u32 %p0, %r0, 0; mov.b32 %o0, 3; st.global.v2.b32 [%d0], {%o0, %o1}; mov.u64 %d2, e;"
                           "P: .callprototype _ () .noreturn; @%p0 call %d2, P; mov.b32 %o0, 4;") ==
        Results{{4, 0}, {3, 0}, {3, 0}, {3, 0}});
}

TEST_CASE("the address of a function's parameter is that of a copy in local memory") {
  const std::string function = R"(.func (.reg .b32 q) f(.param .align 8 .b8 a[20], .param .b32 i) {
    .reg .b64 x, y; .reg .b32 n, v; .local .b32 other; st.local.b32 [other], 1; mov.b64 x, a; ld.param.u32 n, [i]; mad.wide.u32 x, n, 4, x;
    ld.param.b32 q, [x]; ld.local.b32 v, [x+4]; mad.lo.u32 q, v, 10, q; cvta.local.u64 y, x; st.b32 [y], 8; mov.b64 y, a + 4;
    ld.local.b32 v, [y]; mad.lo.u32 q, v, 100, q; })";
  CHECK(twoWords(function, "{ .param .align 8 .b8 a[20]; .param .b32 i; st.param.b32 [a], 1; st.param.b32 [a+4], 2; st.param.b32 [a+8], 3;"
                           "st.param.b32 [a+12], 4; st.param.b32 [a+16], 5; st.param.b32 [i], %r0; call (%o0), f, (a, i); }") ==
        Results{{221, 0}, {832, 0}, {243, 0}, {254, 0}});
}

TEST_CASE("a call whose operands do not match its target is refused") {
  CHECK(isRefused(inRegisters, "call (%o0), f, (%r0);"));
  CHECK(isRefused(inRegisters, "call f, (%r0, 5);"));
  CHECK(isRefused(inRegisters, "call (%o0), f, (%r0, %d0, 5);"));
  CHECK(isRefused(inRegisters, "call (5), f, (%r0, 5);"));
  CHECK(isRefused(inRegisters, "mov.u64 %d2, f; call (%o0), %d2, (%r0, 5);"));
  CHECK(isRefused(inRegisters, "mov.u64 %d2, f; P: .callprototype (.param .b32 _) _ (.param .b32 _); call (%o0), %d2, (%r0, 5), P;"));
  CHECK(isRefused(".func f(.param .align 8 .b8 a[16]) { }", "call f, (%d0);"));
  CHECK(isRefused(".func (.reg .pred q) f(.reg .b32 a) { setp.eq.u32 q, a, 3; ret; }", "call (%p1), f, (%r0);"));
}

}  // namespace vgpu::emulator
