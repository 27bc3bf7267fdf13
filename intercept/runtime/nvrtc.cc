// nvrtcGetCUBIN gives the PTX of the same compilation: for an architecture sm_NN NVRTC keeps both.
#include "intercept/runtime/compiler-row.h"
#include "intercept/runtime/ptx-version.h"

namespace vgpu::runtime {
namespace {

/// Results are nvrtc.h's nvrtcResult.
struct Nvrtc {
  int (*getPtxSize)(void* program, size_t* bytes);
  int (*getPtx)(void* program, char* text);
};
Nvrtc genuine[mostCopies];

template <size_t copy>
int getCubinSize(void* program, size_t* bytes) {
  return genuine[copy].getPtxSize(program, bytes);
}

template <size_t copy>
int getCubin(void* program, char* image) {
  size_t bytes = 0;
  if (int error = genuine[copy].getPtx(program, image)) return error;
  if (int error = genuine[copy].getPtxSize(program, &bytes)) return error;
  lowerPtxVersion({image, bytes});
  return 0;
}

}  // namespace

std::span<const CompilerRow> nvrtcRows() {
  static const CompilerRow rows[] = {
      {"nvrtcGetPTXSize", note<genuine, &Nvrtc::getPtxSize>, {}},
      {"nvrtcGetPTX", note<genuine, &Nvrtc::getPtx>, {}},
      {"nvrtcGetCUBINSize", nullptr, {asTarget(&getCubinSize<0>), asTarget(&getCubinSize<1>)}},
      {"nvrtcGetCUBIN", nullptr, {asTarget(&getCubin<0>), asTarget(&getCubin<1>)}},
  };
  return rows;
}

}  // namespace vgpu::runtime
