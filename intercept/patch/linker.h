// The dynamic linker's list of loaded objects, and notification of changes to it.
//
// Objects opened by dlopen must be patched before their constructors run. The dynamic linker has an interface for debuggers (<link.h>,
// struct r_debug): the list of loaded objects, and the address `r_brk` of an empty function that it calls whenever it has added objects to
// the list or removed some. A debugger sets a breakpoint there; we write a jump there, so the linker calls us:
//
//   dlopen -> map the object and what it needs -> r_state = RT_CONSISTENT, r_brk()  -> relocate -> constructors
//                                                                          ^ here
//
// (glibc 2.36, elf/dl-open.c, dl_open_worker_begin; the order is tested.) Our function runs in the thread that called dlopen, under the
// linker's lock: it walks the list and accesses files and memory, but opens no libraries.
#pragma once
#include <cstdint>
#include <string>

namespace vgpu::runtime {

struct LoadedObject {
  uint64_t base;     ///< the load bias: added to the file's addresses
  const char* name;  ///< as in the linker's list; empty for the program itself
  const void* dynamic;
};

/// Calls `visit` for every object of every namespace in load order, and returns true; returns false without visiting any if a change is in
/// progress. Only under the linker's lock or while the process has one thread.
bool visitLoadedObjects(void (*visit)(const LoadedObject&));

/// True for the object that contains this code.
bool isThisLibrary(const LoadedObject& object);

/// Makes the linker call `changed` after every change of the list. Returns the reason if that is not possible, else nothing.
std::string hookLinker(void (*changed)());

}  // namespace vgpu::runtime
