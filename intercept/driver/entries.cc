// cuGetProcAddress, which looks entries up in tables, and the entries that a session does not support.
#define __CUDA_API_VERSION_INTERNAL  // every version under its own name
#include <cudaProfiler.h>

#include <map>
#include <string>

#include "intercept/session/entry.h"
#include "vgpu/api/driver-entries.h"

#define GRAPHICS(symbol, since) extern "C" int symbol();
#include "intercept/driver/graphics.inc"
#undef GRAPHICS

namespace {

struct Entry {
  void* function;
  unsigned since;
  void* perThread;  // nullptr if the entry has no such flavour
};

// The per-thread flavours, by symbol.
std::map<std::string, void*> collectPerThread() {
  return {
#define PER_THREAD(entry, name) {#entry, vgpu::fromWire<void*>(vgpu::toWire(&name))},
#include "cuda-per-thread.inc"
#undef PER_THREAD
  };
}

// All versions of each entry, by base name, without the _v2 that cuda.h's macros add.
std::multimap<std::string, Entry> collectEntries() {
  std::multimap<std::string, Entry> entries;
  auto perThread = collectPerThread();
  auto add = [&](const vgpu::api::DriverEntry& row, void* function) {
    auto flavour = perThread.find(std::string(row.symbol));
    entries.emplace(vgpu::api::baseNameOf(row.symbol),
                    Entry{function, row.since, flavour == perThread.end() ? nullptr : flavour->second});
  };
  // Deprecated entries are included.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define ENTRY(symbol) add(vgpu::api::entryOf(#symbol), vgpu::fromWire<void*>(vgpu::toWire(&symbol)));
#include "cuda-entries.inc"
#undef ENTRY
#pragma GCC diagnostic pop
#define GRAPHICS(symbol, since) entries.emplace(vgpu::api::baseNameOf(#symbol), Entry{vgpu::fromWire<void*>(vgpu::toWire(&symbol)), since, nullptr});
#include "intercept/driver/graphics.inc"
#undef GRAPHICS
  return entries;
}

struct Lookup {
  void* function = nullptr;
  bool known = false;  // the name exists, perhaps only in a later version
};

Lookup findEntry(const char* symbol, unsigned version, bool perThread) {
  static const auto& entries = *new auto(collectEntries());  // never destroyed: static destructors may still call this
  auto [first, last] = entries.equal_range(symbol);
  Lookup found{.known = first != last};
  unsigned best = 0;
  for (auto at = first; at != last; ++at) {
    const Entry& entry = at->second;
    if (entry.since > version || entry.since < best) continue;
    best = entry.since;
    found.function = perThread && entry.perThread != nullptr ? entry.perThread : entry.function;
  }
  return found;
}

}  // namespace

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                                                 CUdriverProcAddressQueryResult* symbolStatus) {
  constexpr cuuint64_t known = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (symbol == nullptr || pfn == nullptr || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
  // Without a flag the plain flavour: programs compiled for the per-thread one call through a function of cuda.h that sets the flag.
  bool perThread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  Lookup found = findEntry(symbol, static_cast<unsigned>(cudaVersion), perThread);
  *pfn = found.function;
  auto status = found.function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
                : found.known             ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                          : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (symbolStatus != nullptr) {
    *symbolStatus = status;
    return CUDA_SUCCESS;  // if the caller asks for the reason, the driver returns success
  }
  return found.function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // extern "C"
