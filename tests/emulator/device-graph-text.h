// PTX of kernels that launch graphs and change nodes: calls of the device runtime, in addition to device-launch-text.h.
#pragma once

#include "device-launch-text.h"

namespace vgpu::test {

constexpr std::string_view graphCalls = R"(
.extern .func (.param .b32 r) cudaGraphLaunch (.param .b64 g, .param .b64 s);
.extern .func (.param .b32 r) cudaGraphKernelNodeSetParam (.param .b64 n, .param .b64 o, .param .b64 v, .param .b64 b);
.extern .func (.param .b32 r) cudaGraphKernelNodeSetEnabled (.param .b64 n, .param .b32 e);
.extern .func (.param .b32 r) cudaGraphKernelNodeSetGridDim (.param .b64 n, .param .align 4 .b8 g[12]);
.extern .func (.param .b32 r) cudaGraphKernelNodeUpdatesApply (.param .b64 u, .param .b64 c);
)";

// The streams for graph launches from kernels.
constexpr const char *tailStream = "0x0100000000000000", *besideStream = "0x0200000000000000", *siblingStream = "0x0300000000000000";

// All of them leave the error in %r9. Arguments are numbers or registers; 64-bit ones are in %d1 and higher.
inline std::string graphLaunch(std::string_view graph, std::string_view stream) {
  return "{ .param .b64 g1; .param .b64 s1; .param .b32 e1; st.param.b64 [g1], " + std::string(graph) + "; st.param.b64 [s1], " +
         std::string(stream) + "; call.uni (e1), cudaGraphLaunch, (g1, s1); ld.param.b32 %r9, [e1]; }\n";
}
inline std::string setParameter(std::string_view node, std::string_view offset, std::string_view from, std::string_view bytes) {
  return "{ .param .b64 n1; .param .b64 o1; .param .b64 v1; .param .b64 b1; .param .b32 e1; st.param.b64 [n1], " +
         std::string(node) + "; st.param.b64 [o1], " + std::string(offset) + "; st.param.b64 [v1], " + std::string(from) +
         "; st.param.b64 [b1], " + std::string(bytes) +
         "; call.uni (e1), cudaGraphKernelNodeSetParam, (n1, o1, v1, b1); ld.param.b32 %r9, [e1]; }\n";
}
inline std::string setEnabled(std::string_view node, int enabled) {
  return "{ .param .b64 n1; .param .b32 b1; .param .b32 e1; st.param.b64 [n1], " + std::string(node) + "; st.param.b32 [b1], " +
         std::to_string(enabled) + "; call.uni (e1), cudaGraphKernelNodeSetEnabled, (n1, b1); ld.param.b32 %r9, [e1]; }\n";
}
inline std::string setGrid(std::string_view node, int x, int y, int z) {
  return "{ .param .b64 n1; .param .align 4 .b8 g1[12]; .param .b32 e1; st.param.b64 [n1], " + std::string(node) +
         "; st.param.b32 [g1], " + std::to_string(x) + "; st.param.b32 [g1+4], " + std::to_string(y) + "; st.param.b32 [g1+8], " +
         std::to_string(z) + "; call.uni (e1), cudaGraphKernelNodeSetGridDim, (n1, g1); ld.param.b32 %r9, [e1]; }\n";
}
inline std::string applyUpdates(std::string_view updates, int count) {
  return "{ .param .b64 u1; .param .b64 c1; .param .b32 e1; st.param.b64 [u1], " + std::string(updates) + "; st.param.b64 [c1], " +
         std::to_string(count) + "; call.uni (e1), cudaGraphKernelNodeUpdatesApply, (u1, c1); ld.param.b32 %r9, [e1]; }\n";
}

}  // namespace vgpu::test
