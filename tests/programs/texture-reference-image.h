// The text of a module with a texture and a surface reference, which no compiler generates. Thread i of `read` reads texel i, of
// `readFiltered` the sample at coordinate i; thread i of `write` writes `value` + i to element i.
#pragma once

static const char image[] = R"(
.version 8.0
.target sm_75
.address_size 64
.global .texref texels;
.global .surfref places;
.visible .entry readFiltered(.param .u64 out)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  .reg .f32 %f<6>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  cvt.rn.f32.u32 %f5, %r1;
  tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [texels, {%f5}];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.f32 [%rd1], %f1;
  ret;
}
.visible .entry read(.param .u64 out)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  .reg .f32 %f<5>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [texels, {%r1}];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.f32 [%rd1], %f1;
  ret;
}
.visible .entry write(.param .u32 value)
{
  .reg .b32 %r<5>;
  ld.param.u32 %r1, [value];
  mov.u32 %r2, %tid.x;
  add.u32 %r3, %r1, %r2;
  shl.b32 %r4, %r2, 2;
  sust.b.1d.b32.trap [places, {%r4}], {%r3};
  ret;
}
)";
