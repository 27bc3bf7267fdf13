#include "stub/worker/placeholder-images.h"

#include <fmt/format.h>

#include <string>

namespace vgpu::stub {

namespace {

CUresult compile(const Driver& driver, std::string& text, std::vector<char>& image) {
  CUlinkState link = nullptr;
  if (CUresult error = driver.cuLinkCreate_v2(0, nullptr, nullptr, &link)) return error;
  void* code = nullptr;
  size_t bytes = 0;
  CUresult result = driver.cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, "placeholder", 0, nullptr, nullptr);
  if (result == CUDA_SUCCESS) result = driver.cuLinkComplete(link, &code, &bytes);
  if (result == CUDA_SUCCESS) image.assign(static_cast<char*>(code), static_cast<char*>(code) + bytes);
  driver.cuLinkDestroy(link);
  return result;
}

}  // namespace

const void* PlaceholderImages::of(uint64_t bytes) {
  std::vector<char>& image = images[bytes];
  if (image.empty()) {
    std::string text = fmt::format(
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 1 .b8 {}[{}];\n", variable, bytes);
    if (compile(driver, text, image) != CUDA_SUCCESS || image.empty()) image.assign(text.c_str(), text.c_str() + text.size() + 1);
  }
  return image.data();
}

}  // namespace vgpu::stub
