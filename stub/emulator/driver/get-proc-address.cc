#include <algorithm>
#include <cstring>

#include "stub/emulator/driver/entry-table.h"

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult* result) {
  return enterAlways([&] {
    constexpr cuuint64_t known = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    require(symbol != nullptr && function != nullptr && (flags & ~known) == 0);
    Lookup found = findEntry(symbol, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
    if (result) {
      *result = found.function ? CU_GET_PROC_ADDRESS_SUCCESS
                : found.known  ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                               : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    *function = found.function;  // an unknown name is reported in `result` and is no error, as in the driver
  });
}
