#include "intercept/runtime/driver-entries.h"

#include <cuda.h>
#include <dlfcn.h>

#include <atomic>

#include "intercept/runtime/message.h"

namespace vgpu::runtime {
namespace {

/// The rows below define these in assembly, member by member in this order.
struct DriverEntry {
  const char* name;
  void* target;  ///< where the row jumps: the driver's function, or the row's own "missing" code
  std::atomic<int> said;
};
static_assert(sizeof(DriverEntry) == 24);

}  // namespace
}  // namespace vgpu::runtime

using vgpu::runtime::DriverEntry;
// Defined by the linker: the ends of the section that the rows fill.
extern "C" __attribute__((visibility("hidden"))) DriverEntry __start_vgpu_driver_entries[];
extern "C" __attribute__((visibility("hidden"))) DriverEntry __stop_vgpu_driver_entries[];

extern "C" __attribute__((visibility("hidden"), used)) CUresult vgpuDriverEntryIsMissing(DriverEntry* entry) {
  if (!entry->said.exchange(1))
    vgpu::runtime::say({entry->name, " is not in the loaded libcuda.so.1; it returns CUDA_ERROR_NOT_SUPPORTED"});
  return CUDA_ERROR_NOT_SUPPORTED;
}

// One row for each driver function that a row of the runtime calls (generated from the undefined symbols of the objects): the function
// itself, which is one indirect jump as in a procedure linkage table, and its table entry.
// clang-format off
#define ENTRY(name)                                                                              \
  asm(".text\n"                                                                                  \
      ".p2align 4\n"                                                                             \
      ".globl " #name "\n"                                                                       \
      ".hidden " #name "\n"                                                                      \
      ".type " #name ", @function\n"                                                             \
      #name ":\n"                                                                                \
      "  endbr64\n"                                                                              \
      "  jmp *vgpu_entry_" #name "+8(%rip)\n"                                                    \
      "vgpu_missing_" #name ":\n"                                                                \
      "  endbr64\n"                                                                              \
      "  leaq vgpu_entry_" #name "(%rip), %rdi\n"                                                \
      "  jmp vgpuDriverEntryIsMissing\n"                                                         \
      ".size " #name ", . - " #name "\n"                                                         \
      ".section .rodata.str1.1, \"aMS\", @progbits, 1\n"                                         \
      "vgpu_name_" #name ": .string \"" #name "\"\n"                                             \
      ".section vgpu_driver_entries, \"aw\", @progbits\n"                                        \
      ".p2align 3\n"                                                                             \
      "vgpu_entry_" #name ": .quad vgpu_name_" #name ", vgpu_missing_" #name ", 0\n"             \
      ".text\n");
// clang-format on
#include "driver-entry-list.inc"

namespace vgpu::runtime {

const char* bindDriver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // kept until the process ends
  if (library == nullptr) return dlerror();
  for (DriverEntry* entry = __start_vgpu_driver_entries; entry != __stop_vgpu_driver_entries; ++entry)
    if (void* found = dlsym(library, entry->name)) entry->target = found;
  return nullptr;
}

}  // namespace vgpu::runtime
