// The dynamic linker's list of loaded objects, and notification of its changes.
//
// Objects opened by dlopen must be patched before their constructors run. The dynamic linker publishes an interface for
// debuggers (<link.h>, struct r_debug): the list of loaded objects, and the address `r_brk` of an empty function that
// it calls whenever it has added objects to the list or taken some away. A debugger puts a breakpoint there; we put a
// jump there, so the linker itself calls us:
//
//   dlopen -> map the object and what it needs -> r_state = RT_CONSISTENT, r_brk()  -> relocate -> constructors
//                                                                          ^ here
//
// (glibc 2.36, elf/dl-open.c, dl_open_worker_begin; the order is tested.) Our function runs in the thread that called
// dlopen and under the linker's lock: it walks the list and touches files and memory, and opens nothing itself.
#pragma once
#include <cstdint>
#include <string>

namespace vgpu::runtime {

struct LoadedObject {
  uint64_t base;     ///< what the linker added to the addresses of the file
  const char* name;  ///< as in the linker's list; empty for the program itself
  const void* dynamic;
};

/// Calls `visit` for every object of every namespace, in the order in which they were loaded, and returns true; in the
/// middle of a change visits nothing and returns false. Only under the linker's lock or while the process has one
/// thread.
bool visitLoadedObjects(void (*visit)(const LoadedObject&));

/// True for the object that holds this code.
bool isThisLibrary(const LoadedObject& object);

/// From now on `changed` is called after every change of the list. Returns the reason if that is not possible, else nothing.
std::string hookLinker(void (*changed)());

}  // namespace vgpu::runtime
