#include <dlfcn.h>
#include <kj/debug.h>

#include <utility>

#include "stub/worker/libraries.h"

namespace vgpu::stub {

void* Libraries::find(const api::LibraryEntry& entry, std::string& problem) {
  std::lock_guard lock(mutex);
  Loaded& loaded = all.at(entry.library);
  if (!std::exchange(loaded.tried, true)) load(api::libraries[entry.library], loaded);
  problem = loaded.problem;
  if (loaded.handle == nullptr) return nullptr;
  void* function = dlsym(loaded.handle, entry.symbol);
  if (function == nullptr) problem = std::string("it lacks ") + entry.symbol;
  return function;
}

void Libraries::load(const api::Library& library, Loaded& loaded) {
  if (folder.empty() && isEmulated) {
    loaded.problem = "the device is emulated";
    return;
  }
  std::string name = folder.empty() ? library.soname : folder + "/" + library.soname;
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    loaded.problem = dlerror();
    // The host may have the library of CUDA 12 only: the table fits it, except for entries new in CUDA 13.
    name.replace(name.rfind('.'), std::string::npos, ".12");
    handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (handle == nullptr) return;
  loaded.problem.clear();
  if (dlsym(handle, "cuVgpuCallLibrary") != nullptr) {
    loaded.problem = name + " is vgpu's own library of that name";
  } else {
    loaded.handle = handle;
  }
}

namespace {

template <size_t>
using Word = uint64_t;

// The calling convention puts the first six words into registers and the others on the stack, whatever their types (System V
// ABI, x86-64, 3.2.3): a narrower number is the low part of its word.
template <size_t... places>
uint64_t call(void* function, const uint64_t* words, std::index_sequence<places...>) {
  return reinterpret_cast<uint64_t (*)(Word<places>...)>(function)(words[places]...);
}

template <size_t count>
uint64_t callWith(void* function, const uint64_t* words) {
  return call(function, words, std::make_index_sequence<count>());
}

template <size_t... counts>
uint64_t select(void* function, const uint64_t* words, size_t count, std::index_sequence<counts...>) {
  using Call = uint64_t (*)(void*, const uint64_t*);
  static constexpr Call calls[] = {callWith<counts>...};
  return calls[count](function, words);
}

}  // namespace

uint64_t callByWords(void* function, const uint64_t* words, size_t count) {
  KJ_REQUIRE(count <= api::maxLibraryArguments, "too many arguments", count);
  return select(function, words, count, std::make_index_sequence<api::maxLibraryArguments + 1>());
}

}  // namespace vgpu::stub
