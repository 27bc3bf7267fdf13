#include "vgpu/api/library-variables.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace vgpu::api {

namespace {

// cuBLAS's manual (CUDA 13.0). Variables for logs and heuristics files are left out: a program must not choose which files a library reads
// and writes on the GPU's host.
constexpr std::array names = {
    "NVIDIA_TF32_OVERRIDE",            "CUBLAS_WORKSPACE_CONFIG",
    "CUBLAS_EMULATION_STRATEGY",       "CUBLAS_EMULATE_SINGLE_PRECISION",
    "CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT"};
constexpr size_t mostBytes = 128;  // of a value

bool isOfNames(std::string_view variable) {
  return std::ranges::any_of(names, [name = variable.substr(0, variable.find('='))](const char* each) { return name == each; });
}

bool isFit(std::string_view variable) {
  const size_t end = variable.find('=');
  return end != std::string_view::npos && isOfNames(variable) && variable.size() - end - 1 <= mostBytes;
}

struct Environment {
  std::string list;
  std::vector<std::string> variables;
  std::vector<char*> all;
};

}  // namespace

std::string libraryVariables() {
  std::string list;
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr && strnlen(value, mostBytes + 1) <= mostBytes) (list += std::string(name) + "=" + value) += '\0';
  }
  return list += '\0';
}

void useLibraryVariables(std::span<const unsigned char> list) {
  if (list.empty()) return;
  // Replaces the environment's array and frees none of it: setenv() may free what getenv() reads on another thread. Never destroyed.
  static std::mutex& mutex = *new std::mutex;
  static std::deque<Environment>& kept = *new std::deque<Environment>;
  std::lock_guard lock(mutex);
  auto isSame = [](unsigned char given, char known) { return given == static_cast<unsigned char>(known); };
  if (!kept.empty() && std::ranges::equal(list, kept.back().list, isSame)) return;
  const std::string text(list.begin(), list.end());
  Environment& next = kept.emplace_back(Environment{text, {}, {}});
  for (size_t at = 0, end; (end = text.find('\0', at)) != std::string::npos && end != at; at = end + 1)
    if (std::string variable = text.substr(at, end - at); isFit(variable)) next.variables.push_back(std::move(variable));
  for (char** each = environ; *each != nullptr; ++each)
    if (!isOfNames(*each)) next.all.push_back(*each);
  for (std::string& variable : next.variables) next.all.push_back(variable.data());
  next.all.push_back(nullptr);
  std::atomic_ref(environ).store(next.all.data(), std::memory_order_release);  // release: the array's content is visible before its address
}

}  // namespace vgpu::api
