#include "fuzz.h"

namespace vgpu::fuzz {

std::vector<std::string> seeds() {
  const std::string header = ".version 9.0\n.target sm_90\n.address_size 64\n";
  return {
      header + R"(
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.global .align 8 .u64 table[3] = {generic(text), work, 5};
.const .align 4 .f32 factors[2] = {0f3F800000, 2};
.global .align 1 .b8 text[4] = {37, 100, 10, 0};
.visible .global .attribute(.managed) .align 4 .u32 seen;
.func (.param .b32 out) work(.param .b32 in)
{
  .reg .b32 %r<3>;
  .reg .pred %p;
  ld.param.u32 %r1, [in];
  setp.eq.u32 %p, %r1, 0;
  @%p bra done;
  sub.u32 %r1, %r1, 1;
  { .param .b32 a0; .param .b32 v0;
    st.param.b32 [a0], %r1;
    call.uni (v0), work, (a0);
    ld.param.b32 %r2, [v0]; }
  add.u32 %r1, %r2, %r1;
done:
  st.param.b32 [out], %r1;
  ret;
}
.visible .entry calls(.param .u64 p) .maxntid 64, 1, 1
{
  .local .align 8 .b8 frame[16];
  .reg .b32 %r<3>;
  .reg .b64 %d<5>;
  ld.param.u64 %d1, [p];
  mov.u32 %r1, 7;
  { .param .b32 a0; .param .b32 v0;
    st.param.b32 [a0], %r1;
    call (v0), work, (a0);
    ld.param.b32 %r2, [v0]; }
  st.global.u32 [%d1+4], %r2;
  mov.u64 %d2, frame;
  st.local.u32 [%d2], %r2;
  cvta.local.u64 %d3, %d2;
  { .param .b64 a0; .param .b64 a1; .param .b32 v0;
    mov.u64 %d4, text;
    st.param.b64 [a0], %d4;
    st.param.b64 [a1], %d3;
    call.uni (v0), vprintf, (a0, a1); }
  ret;
}
)",
      header + R"(
.visible .entry shared(.param .u64 p, .param .align 4 .b8 s[12])
{
  .shared .align 16 .b8 tile[256];
  .extern .shared .align 16 .b8 more[];
  .reg .pred %p<3>;
  .reg .f32 %f<4>;
  .reg .b32 %r<8>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [p];
  ld.param.f32 %f1, [s+8];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  mad.lo.u32 %r3, %r1, 4, %r2;
  st.shared.u32 [%r3], %r1;
  bar.sync 0;
  ld.shared.v2.u32 {%r4, %r5}, [%r2+8];
  shfl.sync.bfly.b32 %r6|%p1, %r4, 1, 31, -1;
  vote.sync.ballot.b32 %r7, %p1, 0xffffffff;
  atom.global.cas.b32 %r5, [%d1], %r6, %r7;
  red.shared.add.u32 [tile+16], 1;
  setp.lt.and.u32 %p2|%p1, %r1, 9, %p1;
  @!%p2 bra L1;
  cvt.rn.f32.u32 %f2, %r1;
  fma.rn.ftz.f32 %f3, %f2, 0f40490FDB, %f1;
  st.global.f32 [%d1+64], %f3;
L1:
  lop3.b32 %r4, %r4, %r5, %r6, 0x96;
targets: .branchtargets L2, L3;
  brx.idx %r1, targets;
L2:
  trap;
L3:
  exit;
}
)",
      // Only bodies: the target wraps them into a kernel.
      "mov.u32 %r1, 1;\nL: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 100; @%p1 bra L;\nst.global.u32 [%d1], %r1;",
      "ld.param.u64 %d1, [p]; prmt.b32 %r1, 0x12345678, %r2, 0x3210; cvt.rn.f16.f32 %h1, 0f3F800000;\n"
      "mov.b64 %d2, {%r1, %r2}; bfe.u32 %r3, %r1, 4, 8; dp4a.s32.u32 %r1, %r2, %r3, %r1;",
      ".shared .align 8 .b64 b; mbarrier.init.shared.b64 [b], 40; mbarrier.arrive.shared.b64 %d1, [b];\n"
      "mbarrier.test_wait.shared.b64 %p1, [b], %d1; cp.async.ca.shared.global [b], [%d2], 8; cp.async.wait_all;",
  };
}

}  // namespace vgpu::fuzz
