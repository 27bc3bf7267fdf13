// Calls every entry of the libraries' table that runs in the worker, twice in each pointer mode, with arguments made from the rows, and
// prints each status and the outputs in host memory. It runs against the recording library directly and in a session.
#include <cuda.h>
#include <dlfcn.h>

#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "stub/worker/libraries.h"
#include "vgpu/api/library.h"

using namespace vgpu::api;

namespace {

constexpr size_t hostBytes = 4096;
std::map<uint8_t, uint64_t> objects;  // by type: the program's handle
uint64_t device = 0;                  // device memory, or an address that looks like it

struct Call {
  const LibraryEntry& entry;
  std::array<uint64_t, maxLibraryArguments> words{};
  std::vector<std::vector<std::byte>> host;

  // All numbers differ; data types and compute types are 32 bits wide.
  explicit Call(const LibraryEntry& entry, unsigned mode) : entry(entry) {
    host.reserve(entry.arguments.size());
    for (size_t i = 0; i < entry.arguments.size(); ++i) {
      auto& argument = entry.arguments[i];
      words[i] = argument.what == Argument::value    ? 2 + i
                 : argument.what == Argument::object ? objects[argument.objectType]
                 : argument.what == Argument::stream ? 0
                                                     : pointer(i, mode);
    }
    for (auto& argument : entry.arguments) {
      if (argument.typedBy == TypedBy::dataType) words[argument.type] = 5;  // CUDA_C_64F
      if (argument.typedBy == TypedBy::computeType) words[argument.type] = 68, words[argument.resultType] = 4;
    }
    for (auto& note : entry.notes) {
      if (note.condition != noArgument && note.member == Member::pointerMode && !note.holdsObject) {
        words[note.condition] = note.value;
        words[entry.arguments[note.from].count] = 4;
        host[0].assign(hostBytes, std::byte{0});
        host[0][0] = static_cast<std::byte>(mode);
      }
      if (note.condition == noArgument && note.member == Member::pointerMode) words[note.from] = mode;
      if (note.condition == noArgument && note.member == Member::scaleType) words[note.from] = 5;
    }
  }

  uint64_t pointer(size_t i, unsigned mode) {
    auto& argument = entry.arguments[i];
    bool isHost = (isRead(argument.what) || isWritten(argument.what)) && (argument.hostModes >> mode & 1) != 0;
    if (!isHost && argument.what != Argument::made && argument.what != Argument::place) return device + 256 * i;
    auto& bytes = host.emplace_back(hostBytes);
    for (size_t k = 0; k < 64; ++k) bytes[k] = static_cast<std::byte>(isRead(argument.what) ? 16 * i + k + 1 : 0);
    bytes[5] = bytes[6] = bytes[7] = std::byte{0};  // so that it does not look like an address
    return std::bit_cast<uint64_t>(bytes.data());
  }

  void run(void* function) {
    uint64_t result = vgpu::stub::callByWords(function, words.data(), entry.arguments.size());
    if (entry.returnsStatus) result = static_cast<uint32_t>(result);
    std::printf("%s %llu", entry.symbol, static_cast<unsigned long long>(result));
    if (entry.does == Does::create) {
      for (size_t i = 0; i < entry.arguments.size(); ++i)
        if (entry.arguments[i].what == Argument::made) std::memcpy(&objects[entry.arguments[i].objectType], host[0].data(), 8);
    } else {
      uint64_t digest = 0;
      for (auto& bytes : host)
        for (std::byte byte : bytes) digest = (digest ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
      std::printf(" %016llx", static_cast<unsigned long long>(digest));
    }
    std::printf("\n");
  }
};

void takeDeviceMemory() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  auto init = driver == nullptr ? nullptr : std::bit_cast<CUresult (*)(unsigned)>(dlsym(driver, "cuInit"));
  CUcontext context;
  CUdeviceptr memory;
  bool isThere = std::getenv("VGPU_NODE") != nullptr && init != nullptr && init(0) == CUDA_SUCCESS &&
                 std::bit_cast<decltype(&cuDevicePrimaryCtxRetain)>(dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, 0) == 0 &&
                 std::bit_cast<decltype(&cuCtxSetCurrent)>(dlsym(driver, "cuCtxSetCurrent"))(context) == CUDA_SUCCESS &&
                 std::bit_cast<decltype(&cuMemAlloc)>(dlsym(driver, "cuMemAlloc_v2"))(&memory, 1 << 20) == CUDA_SUCCESS;
  device = isThere ? memory : std::bit_cast<uint64_t>(std::aligned_alloc(1 << 20, 1 << 20));
}

}  // namespace

int main() {
  std::map<uint8_t, void*> loaded;
  takeDeviceMemory();
  for (size_t i = 0; i < libraries.size(); ++i) loaded[static_cast<uint8_t>(i)] = dlopen(libraries[i].soname, RTLD_NOW);
  auto each = [&](auto&& wanted, unsigned mode) {
    for (auto& entry : libraryEntries) {
      if (!wanted(entry)) continue;
      void* library = loaded[entry.library];
      void* function = library == nullptr ? nullptr : dlsym(library, entry.symbol);
      if (function == nullptr) std::printf("%s is not there\n", entry.symbol), std::exit(1);
      for (int again = 0; again < 2; ++again) {
        Call(entry, mode).run(function);
        if (entry.does == Does::create || entry.does == Does::destroy) break;
      }
    }
  };
  auto does = [](Does wanted) { return [wanted](auto& entry) { return entry.does == wanted; }; };
  each([](auto& entry) { return entry.does == Does::create && entry.arguments[0].what == Argument::made; }, 0);
  for (unsigned mode = 0; mode < 2; ++mode) {
    each(does(Does::set), mode);
    each(does(Does::recall), mode);
    each(does(Does::query), 0);
    each(does(Does::work), mode);
  }
  each(does(Does::destroy), 0);
  // Waits until the worker has executed the posted calls.
  each([](auto& entry) { return entry.does == Does::query && !entry.returnsStatus; }, 0);
}
