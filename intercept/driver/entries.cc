// The entries as data: cuGetProcAddress, and what has no business in a session.
#include <cudaProfiler.h>

#include <map>
#include <string>

#include "intercept/session/entry.h"

// Versions that cuda.h no longer declares under their own names.
#undef cuEventElapsedTime
extern "C" CUresult CUDAAPI cuEventElapsedTime(float*, CUevent, CUevent);
extern "C" CUresult CUDAAPI cuCtxCreate_v2(CUcontext*, unsigned, CUdevice);

namespace {

struct Entry {
  void* function;
  unsigned since;
};

// By base name, without the _v2 that cuda.h's macros add; every version of an entry, oldest first.
std::multimap<std::string, Entry> collectEntries() {
  std::multimap<std::string, Entry> entries;
  auto add = [&](std::string symbol, Entry entry) {
    auto suffix = symbol.rfind("_v");
    if (suffix != std::string::npos && suffix + 3 == symbol.size()) symbol.resize(suffix);
    entries.emplace(symbol, entry);
  };
#define ENTRY(symbol, since) add(#symbol, {vgpu::fromWire<void*>(vgpu::toWire(&symbol)), since});
#include "cuda-entries.inc"
#undef ENTRY
  return entries;
}

}  // namespace

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t,
                                                 CUdriverProcAddressQueryResult* symbolStatus) {
  static const auto& entries = *new auto(collectEntries());  // never destroyed: static destructors may still ask
  if (symbol == nullptr || pfn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pfn = nullptr;
  auto [first, last] = entries.equal_range(symbol);
  unsigned best = 0;
  for (auto entry = first; entry != last; ++entry) {
    if (entry->second.since > static_cast<unsigned>(cudaVersion) || entry->second.since < best) continue;
    best = entry->second.since;
    *pfn = entry->second.function;
  }
  auto status = *pfn != nullptr  ? CU_GET_PROC_ADDRESS_SUCCESS
                : first == last ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
                                : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  if (symbolStatus != nullptr) {
    *symbolStatus = status;
    return CUDA_SUCCESS;  // with a place for the reason, the driver calls it no error
  }
  return *pfn != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

VGPU_EXPORT CUresult CUDAAPI cuGetExportTable(const void** ppExportTable, const CUuuid*) {
  if (ppExportTable != nullptr) *ppExportTable = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

VGPU_EXPORT CUresult CUDAAPI cuProfilerStart() { return CUDA_SUCCESS; }
VGPU_EXPORT CUresult CUDAAPI cuProfilerStop() { return CUDA_SUCCESS; }

}  // extern "C"
