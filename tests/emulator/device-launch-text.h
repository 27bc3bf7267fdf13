// PTX of kernels that launch kernels: the header of such modules, and calls of the device runtime.
#pragma once

#include <string>
#include <string_view>

namespace vgpu::test {

// The kernel note(notes, what) appends `what` to the words behind the count at `notes`, and so does the function take(). The function
// launch(kernel, threads, stream, notes, what) launches a kernel with the last two as parameters, and returns 1000 if it got no buffer.
constexpr std::string_view launchHeader = R"(
.version 9.0
.target sm_75
.address_size 64
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2
    (.param .b64 k, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2 (.param .b64 p, .param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2GetLastError ();
.extern .func (.param .b32 r) __cudaCDP2PeekAtLastError ();
.extern .func (.param .b32 r) __cudaCDP2MemsetAsync (.param .b64 p, .param .b32 v, .param .b64 n, .param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2MemcpyAsync (.param .b64 t, .param .b64 f, .param .b64 n, .param .b32 k, .param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2EventCreateWithFlags (.param .b64 e, .param .b32 f);
.extern .func (.param .b32 r) __cudaCDP2GetDevice (.param .b64 d);
.extern .func (.param .b64 r) __cudaCDP2GetErrorName (.param .b32 e);

.func (.param .b64 r) bufferFor (.param .b64 k, .param .b32 n)
{
  .reg .b64 %d<3>; .reg .b32 %r<3>;
  ld.param.u64 %d0, [k]; ld.param.u32 %r0, [n];
  .param .b64 k1; .param .align 4 .b8 g1[12]; .param .align 4 .b8 b1[12]; .param .b32 s1; .param .b64 r1;
  st.param.b64 [k1], %d0;
  st.param.b32 [g1], 1; st.param.b32 [g1+4], 1; st.param.b32 [g1+8], 1;
  st.param.b32 [b1], %r0; st.param.b32 [b1+4], 1; st.param.b32 [b1+8], 1;
  st.param.b32 [s1], 0;
  call.uni (r1), __cudaCDP2GetParameterBufferV2, (k1, g1, b1, s1);
  ld.param.b64 %d1, [r1];
  st.param.b64 [r], %d1;
  ret;
}
.func (.param .b32 r) launchBuffer (.param .b64 p, .param .b64 s)
{
  .reg .b64 %d<3>; .reg .b32 %r<3>;
  ld.param.u64 %d0, [p]; ld.param.u64 %d1, [s];
  .param .b64 p1; .param .b64 s1; .param .b32 r1;
  st.param.b64 [p1], %d0; st.param.b64 [s1], %d1;
  call.uni (r1), __cudaCDP2LaunchDeviceV2, (p1, s1);
  ld.param.b32 %r0, [r1];
  st.param.b32 [r], %r0;
  ret;
}
.func (.param .b32 r) launch (.param .b64 k, .param .b32 n, .param .b64 s, .param .b64 a, .param .b32 w)
{
  .reg .b64 %d<5>; .reg .b32 %r<5>; .reg .pred %p;
  ld.param.u64 %d0, [k]; ld.param.u32 %r0, [n]; ld.param.u64 %d1, [s]; ld.param.u64 %d2, [a]; ld.param.u32 %r1, [w];
  { .param .b64 k1; .param .b32 n1; .param .b64 r1;
    st.param.b64 [k1], %d0; st.param.b32 [n1], %r0;
    call.uni (r1), bufferFor, (k1, n1);
    ld.param.b64 %d3, [r1]; }
  setp.eq.u64 %p, %d3, 0;
  mov.u32 %r2, 1000;
  @%p bra END;
  st.u64 [%d3], %d2;
  st.u32 [%d3+8], %r1;
  { .param .b64 p1; .param .b64 s1; .param .b32 r1;
    st.param.b64 [p1], %d3; st.param.b64 [s1], %d1;
    call.uni (r1), launchBuffer, (p1, s1);
    ld.param.b32 %r2, [r1]; }
END:
  st.param.b32 [r], %r2;
  ret;
}
.func take (.param .b64 a, .param .b32 w)
{
  .reg .b64 %d<3>; .reg .b32 %r<3>;
  ld.param.u64 %d0, [a]; ld.param.u32 %r0, [w];
  atom.add.u32 %r1, [%d0], 1;
  mul.wide.u32 %d1, %r1, 4;
  add.u64 %d1, %d1, %d0;
  st.u32 [%d1+4], %r0;
  ret;
}
.visible .entry note (.param .u64 a, .param .u32 w)
{
  .reg .b64 %d0; .reg .b32 %r0;
  ld.param.u64 %d0, [a]; ld.param.u32 %r0, [w];
  .param .b64 a1; .param .b32 w1;
  st.param.b64 [a1], %d0; st.param.b32 [w1], %r0;
  call.uni take, (a1, w1);
  ret;
}
)";

// A kernel NAME(notes, what) with registers %d0 (notes), %r0 (what), %d1 to %d9, %r1 to %r9 and %p.
inline std::string launchingKernel(std::string_view name, std::string_view body) {
  return ".visible .entry " + std::string(name) +
         "(.param .u64 notes, .param .u32 what)\n{ .reg .b64 %d<10>; .reg .b32 %r<10>; .reg .pred %p;\n"
         "ld.param.u64 %d0, [notes]; ld.param.u32 %r0, [what];\n" +
         std::string(body) + "\nret; }\n";
}

// launch(kernel, threads, stream, notes, `what`), its error in %r9. `what` is a number or a register.
inline std::string launchOf(std::string_view kernel, std::string_view what, int stream = 0, int threads = 1) {
  return "{ .param .b64 k1; .param .b32 n1; .param .b64 s1; .param .b64 a1; .param .b32 w1; .param .b32 e1; mov.u64 %d9, " +
         std::string(kernel) + "; st.param.b64 [k1], %d9; st.param.b32 [n1], " + std::to_string(threads) +
         "; st.param.b64 [s1], " + std::to_string(stream) + "; st.param.b64 [a1], %d0; st.param.b32 [w1], " + std::string(what) +
         "; call.uni (e1), launch, (k1, n1, s1, a1, w1); ld.param.b32 %r9, [e1]; }\n";
}

// take(notes, `what`).
inline std::string takeNote(std::string_view what) {
  return "{ .param .b64 a1; .param .b32 w1; st.param.b64 [a1], %d0; st.param.b32 [w1], " + std::string(what) +
         "; call.uni take, (a1, w1); }\n";
}

// A call without arguments of a function that returns 32 bits, into %r9.
inline std::string callOf(std::string_view function) {
  return "{ .param .b32 e1; call.uni (e1), " + std::string(function) + ", (); ld.param.b32 %r9, [e1]; }\n";
}

}  // namespace vgpu::test
