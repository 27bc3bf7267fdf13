// Small kernels as PTX text, for tests of the driver rather than of kernel code.
#pragma once

namespace vgpu::test {

// store(p, v): *p = v.  increment(p): every thread adds 1 to *p.  waitFor(p, v): spins until *p == v.
// square(p, n): p[i] = i * i for i < n.  empty().
constexpr const char* kernels = R"(
.version 8.0
.target sm_75
.address_size 64

.visible .global .align 4 .u32 counter;
.visible .global .align 8 .u64 slots[16];

.visible .entry store(.param .u64 p, .param .u32 v)
{
  .reg .b64 %a;
  .reg .b32 %v;
  ld.param.u64 %a, [p];
  ld.param.u32 %v, [v];
  st.volatile.global.u32 [%a], %v;
  ret;
}

.visible .entry increment(.param .u64 p)
{
  .reg .b64 %a;
  .reg .b32 %old;
  ld.param.u64 %a, [p];
  atom.global.add.u32 %old, [%a], 1;
  ret;
}

.visible .entry waitFor(.param .u64 p, .param .u32 v)
{
  .reg .b64 %a;
  .reg .b32 %want, %now;
  .reg .pred %differ;
  ld.param.u64 %a, [p];
  ld.param.u32 %want, [v];
again:
  ld.volatile.global.u32 %now, [%a];
  setp.ne.u32 %differ, %now, %want;
  @%differ bra again;
  ret;
}

.visible .entry square(.param .u64 p, .param .u32 n)
{
  .reg .b64 %a, %o;
  .reg .b32 %n, %i, %s, %t, %b;
  .reg .pred %past;
  ld.param.u64 %a, [p];
  ld.param.u32 %n, [n];
  mov.u32 %t, %tid.x;
  mov.u32 %s, %ntid.x;
  mov.u32 %b, %ctaid.x;
  mad.lo.u32 %i, %b, %s, %t;
  setp.ge.u32 %past, %i, %n;
  @%past ret;
  mul.wide.u32 %o, %i, 4;
  add.u64 %a, %a, %o;
  mul.lo.u32 %i, %i, %i;
  st.global.u32 [%a], %i;
  ret;
}

.visible .entry empty()
{
  ret;
}
)";

}  // namespace vgpu::test
