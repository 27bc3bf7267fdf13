// Functions of CUDA's device runtime for cooperative groups (cuda_device_runtime_api.h, cudaCG*), as PTX that is linked in place of
// libcudadevrt.a. The other calls of the device runtime are built in (ptx/run/device-runtime.h).
//
// A group is the grid of a cooperative launch; its handle is the address of the launch's workspace, and 0 for any other launch. The group's
// barrier is a word there: every block adds to it, and the first block adds such a number that the top bit flips when the last block
// arrives.
#pragma once

#include <string_view>

namespace vgpu::emulator::api {

constexpr std::string_view groupFunctions = R"(.version 7.5
.target sm_75
.address_size 64
.weak .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
  .reg .pred %isGrid; .reg .b32 %scope, %high, %low; .reg .b64 %workspace;
  ld.param.b32 %scope, [scope];
  mov.b32 %high, %envreg1;
  mov.b32 %low, %envreg2;
  mov.b64 %workspace, {%low, %high};
  setp.eq.u32 %isGrid, %scope, 1;
  selp.b64 %workspace, %workspace, 0, %isGrid;
  st.param.b64 [handle], %workspace;
  ret;
}
.weak .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
  .reg .pred %isNone, %isOther, %waits; .reg .b32 %t, %u, %blocks, %before, %now; .reg .b64 %word;
  ld.param.b64 %word, [handle];
  setp.eq.u64 %isNone, %word, 0;
  @%isNone bra none;
  add.u64 %word, %word, 2048;
  barrier.sync 0;
  mov.u32 %t, %tid.x;
  mov.u32 %u, %tid.y;
  or.b32 %t, %t, %u;
  mov.u32 %u, %tid.z;
  or.b32 %t, %t, %u;
  setp.ne.u32 %isOther, %t, 0;
  @%isOther bra arrived;
  mov.u32 %blocks, %nctaid.x;
  mov.u32 %u, %nctaid.y;
  mul.lo.u32 %blocks, %blocks, %u;
  mov.u32 %u, %nctaid.z;
  mul.lo.u32 %blocks, %blocks, %u;
  mov.u32 %t, %ctaid.x;
  mov.u32 %u, %ctaid.y;
  or.b32 %t, %t, %u;
  mov.u32 %u, %ctaid.z;
  or.b32 %t, %t, %u;
  setp.ne.u32 %isOther, %t, 0;
  sub.u32 %blocks, 0x80000001, %blocks;
  selp.b32 %blocks, 1, %blocks, %isOther;
  fence.acq_rel.gpu;
  atom.global.add.u32 %before, [%word], %blocks;
again:
  ld.volatile.global.u32 %now, [%word];
  xor.b32 %now, %now, %before;
  setp.ge.s32 %waits, %now, 0;
  @%waits bra again;
  fence.acq_rel.gpu;
arrived:
  barrier.sync 0;
  st.param.b32 [error], 0;
  ret;
none:
  st.param.b32 [error], 1;
  ret;
}
.weak .func (.param .b32 error) cudaCGSynchronizeGrid(.param .b64 handle, .param .b32 flags)
{
  .reg .b32 %r; .reg .b64 %d;
  ld.param.b64 %d, [handle];
  { .param .b32 answer; .param .b64 group; .param .b32 none;
    st.param.b64 [group], %d;
    st.param.b32 [none], 0;
    call.uni (answer), cudaCGSynchronize, (group, none);
    ld.param.b32 %r, [answer]; }
  st.param.b32 [error], %r;
  ret;
}
.weak .func (.param .b32 error) cudaCGGetSize(.param .b64 threads, .param .b64 grids, .param .b64 handle)
{
  .reg .pred %isNone; .reg .b32 %r, %u; .reg .b64 %d;
  mov.u32 %r, %ntid.x;
  mov.u32 %u, %ntid.y;   mul.lo.u32 %r, %r, %u;
  mov.u32 %u, %ntid.z;   mul.lo.u32 %r, %r, %u;
  mov.u32 %u, %nctaid.x; mul.lo.u32 %r, %r, %u;
  mov.u32 %u, %nctaid.y; mul.lo.u32 %r, %r, %u;
  mov.u32 %u, %nctaid.z; mul.lo.u32 %r, %r, %u;
  ld.param.b64 %d, [threads];
  st.u32 [%d], %r;
  ld.param.b64 %d, [grids];
  setp.eq.u64 %isNone, %d, 0;
  @%isNone bra done;
  st.u32 [%d], 1;
done:
  st.param.b32 [error], 0;
  ret;
}
.weak .func (.param .b32 error) cudaCGGetRank(.param .b64 thread, .param .b64 grid, .param .b64 handle)
{
  .reg .pred %isNone; .reg .b32 %r, %s, %t; .reg .b64 %d;
  mov.u32 %r, %ctaid.z;
  mov.u32 %s, %nctaid.y; mov.u32 %t, %ctaid.y; mad.lo.u32 %r, %r, %s, %t;
  mov.u32 %s, %nctaid.x; mov.u32 %t, %ctaid.x; mad.lo.u32 %r, %r, %s, %t;
  mov.u32 %s, %ntid.z;   mov.u32 %t, %tid.z;   mad.lo.u32 %r, %r, %s, %t;
  mov.u32 %s, %ntid.y;   mov.u32 %t, %tid.y;   mad.lo.u32 %r, %r, %s, %t;
  mov.u32 %s, %ntid.x;   mov.u32 %t, %tid.x;   mad.lo.u32 %r, %r, %s, %t;
  ld.param.b64 %d, [thread];
  st.u32 [%d], %r;
  ld.param.b64 %d, [grid];
  setp.eq.u64 %isNone, %d, 0;
  @%isNone bra done;
  st.u32 [%d], 0;
done:
  st.param.b32 [error], 0;
  ret;
}
)";

}  // namespace vgpu::emulator::api
