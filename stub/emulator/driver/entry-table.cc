#include "stub/emulator/driver/entry-table.h"

#include "stub/emulator/driver/casts-unsafe.h"
#include "stub/emulator/stream/stream.h"
#include "vgpu/api/driver-entries.h"

namespace vgpu::emulator::api {
namespace {

// The same function, with the null stream meaning the calling thread's default stream.
template <auto function>
struct PerThread;
template <class... Arguments, CUresult(CUDAAPI* function)(Arguments...)>
struct PerThread<function> {
  static CUresult CUDAAPI call(Arguments... arguments) {
    PerThreadDefault scope;
    return function(arguments...);
  }
};

template <auto function, bool exists>
void* perThreadOf() {
  if constexpr (exists) return asAddress(&PerThread<function>::call);
  return nullptr;
}

// Every entry in the table of entries; those that the emulator lacks are in unsupported.cc.
#define ENTRY(symbol)                                                                                                  \
  {                                                                                                                    \
    vgpu::api::baseNameOf(#symbol), static_cast<int>(vgpu::api::entryOf(#symbol).since), asAddress(&symbol),           \
        perThreadOf<&symbol, vgpu::api::entryOf(#symbol).hasPerThread>()                                               \
  },

// The table has deprecated entries too.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
const Entry table[] = {
#include "cuda-all-entries.inc"
};

#pragma GCC diagnostic pop

#undef ENTRY

}  // namespace

std::span<const Entry> entries() { return table; }

Lookup findEntry(std::string_view name, int version, bool perThread) {
  const Entry* best = nullptr;
  Lookup found;
  for (const Entry& entry : table) {
    if (entry.name != name) continue;
    found.known = true;
    if (entry.since > version || (best && best->since >= entry.since)) continue;
    best = &entry;
  }
  if (best) found.function = perThread && best->perThread ? best->perThread : best->function;
  return found;
}

}  // namespace vgpu::emulator::api
