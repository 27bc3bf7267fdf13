// The names and texts of CUDA's errors. Programs print both and compare the output, so they equal NVIDIA's (tested against the toolkit's
// own library).
#include <algorithm>
#include <iterator>

#include "intercept/runtime/rows.h"

namespace {

struct ErrorText {
  cudaError_t error;
  const char *name, *text;
};
#define ROW(error, text) \
  { error, #error, text }
// Sorted by number.
constexpr ErrorText texts[] = {
#include "vgpu/api/error-texts.inc"
};
#undef ROW
static_assert(std::ranges::is_sorted(texts, {}, &ErrorText::error));

constexpr ErrorText unknown = {cudaErrorUnknown, "unrecognized error code", "unrecognized error code"};

const ErrorText& textOf(cudaError_t error) {
  auto row = std::ranges::lower_bound(texts, error, {}, &ErrorText::error);
  return row != std::end(texts) && row->error == error ? *row : unknown;
}

}  // namespace

using namespace vgpu::runtime;

extern "C" {
const char* cudaGetErrorName(cudaError_t error) { return textOf(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return textOf(error).text; }
cudaError_t cudaGetLastError() { return takeLastError(); }
cudaError_t cudaPeekAtLastError() { return peekLastError(); }
}
