// Kernels with the maximum size of parameters: one structure, and a thousand numbers. And another long reply: an error log of a refused
// image that contains a long word.
#include <cstring>
#include <string>

#include "driver-entry.h"

namespace {

constexpr unsigned words = 1000;  // 4,000 bytes

struct Large {
  unsigned word[words];
};

__global__ void sumOf(const __grid_constant__ Large large, unsigned* out) {
  unsigned sum = 0;
  for (unsigned i = 0; i < words; ++i) sum = sum * 31 + large.word[i];
  *out = sum;
}

// A kernel whose parameters are `count` numbers and an address for their sum.
std::string imageOf(unsigned count) {
  std::string parameters, body;
  for (unsigned i = 0; i < count; ++i) {
    const std::string name = "p" + std::to_string(i);
    parameters += ".param .u32 " + name + ", ";
    body += "  ld.param.u32 %v, [" + name + "];\n  mul.lo.u32 %s, %s, 31;\n  add.u32 %s, %s, %v;\n";
  }
  return ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry sum(" + parameters +
         ".param .u64 out) {\n  .reg .u32 %v, %s;\n  .reg .u64 %a;\n  mov.u32 %s, 0;\n" + body +
         "  ld.param.u64 %a, [out];\n  cvta.to.global.u64 %a, %a;\n  st.global.u32 [%a], %s;\n  ret;\n}\n";
}

bool manyNumbers(const Large& large, unsigned expected) {
  CUmodule module;
  CUfunction sum;
  check(find<decltype(&cuModuleLoadData)>("cuModuleLoadData")(&module, imageOf(words).c_str()), "cuModuleLoadData");
  check(find<decltype(&cuModuleGetFunction)>("cuModuleGetFunction")(&sum, module, "sum"), "cuModuleGetFunction");
  DeviceArray<unsigned> out(1);
  unsigned* address = out;
  std::vector<void*> parameters;
  for (const unsigned& word : large.word) parameters.push_back(const_cast<unsigned*>(&word));
  parameters.push_back(&address);
  pausePoint();
  check(find<decltype(&cuLaunchKernel)>("cuLaunchKernel")(sum, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters.data(), nullptr),
        "cuLaunchKernel");
  size_t offset = 0, bytes = 0;
  check(find<decltype(&cuFuncGetParamInfo)>("cuFuncGetParamInfo")(sum, words - 1, &offset, &bytes), "cuFuncGetParamInfo");
  return EXPECT(out.download()[0] == expected) & EXPECT(offset == (words - 1) * 4) & EXPECT(bytes == 4);
}

bool longLog() {
  const std::string word(20000, 'x');
  std::vector<char> log(64 * 1024);
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  CUmodule module;
  const std::string image = ".version 7.0\n.target sm_70\n.address_size 64\n.global ." + word + " a;\n";
  const CUresult result =
      find<decltype(&cuModuleLoadDataEx)>("cuModuleLoadDataEx")(&module, image.c_str(), 2, options, values);
  return EXPECT(result == CUDA_ERROR_INVALID_PTX) & EXPECT(std::string(log.data()).find(word) != std::string::npos);
}

}  // namespace

int main() {
  Large large;
  unsigned expected = 0;
  for (unsigned i = 0; i < words; ++i) {
    large.word[i] = i * i + 7;
    expected = expected * 31 + large.word[i];
  }
  DeviceArray<unsigned> out(1);
  sumOf<<<1, 1>>>(large, out);
  CHECK(cudaGetLastError());
  const bool ok = EXPECT(out.download()[0] == expected) & longLog() & manyNumbers(large, expected);
  return verdict("many-parameters", ok);
}
