#include <link.h>

#include "intercept/patch/linker.h"
#include "intercept/patch/write.h"

namespace vgpu::runtime {
namespace {

/// The linker's own r_debug structure. A program that refers to _r_debug may have a copy relocation of it, made once at its start; the
/// program's DT_DEBUG entry always has the address of the original.
const r_debug* linkerState() {
  if (_r_debug.r_map == nullptr) return &_r_debug;
  for (const ElfW(Dyn)* entry = _r_debug.r_map->l_ld; entry != nullptr && entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_DEBUG && entry->d_un.d_ptr != 0) return reinterpret_cast<const r_debug*>(entry->d_un.d_ptr);
  return &_r_debug;
}

// From version 2 of the interface (glibc 2.35) on, the further namespaces of dlmopen are linked from the first.
const r_debug* nextNamespace(const r_debug* state, int version) {
  return version < 2 ? nullptr : &reinterpret_cast<const r_debug_extended*>(state)->r_next->base;
}

}  // namespace

bool visitLoadedObjects(void (*visit)(const LoadedObject&)) {
  const r_debug* first = linkerState();
  int version = first->r_version;
  for (const r_debug* state = first; state != nullptr; state = nextNamespace(state, version))
    if (state->r_state != r_debug::RT_CONSISTENT) return false;
  for (const r_debug* state = first; state != nullptr; state = nextNamespace(state, version))
    for (const link_map* object = state->r_map; object != nullptr; object = object->l_next)
      visit({object->l_addr, object->l_name, object->l_ld});
  return true;
}

// <link.h> declares _DYNAMIC, which refers to the dynamic section of the object that uses it.
bool isThisLibrary(const LoadedObject& object) { return object.dynamic == _DYNAMIC; }

std::string hookLinker(void (*changed)()) {
  const r_debug* state = linkerState();
  if (state->r_version < 1 || state->r_brk == 0) return "the dynamic linker has no debugger interface";
  return replaceEmptyFunction(state->r_brk, changed);
}

}  // namespace vgpu::runtime
