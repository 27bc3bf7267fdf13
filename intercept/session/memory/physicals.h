// Physical memory that a program has handles of (cuMemCreate, cuMemImportFromShareableHandle). What it imports has a handle of its own
// each time, also if it has that memory already: as in CUDA, each handle is released by itself, and only the one that has made the
// memory can export it.
//
// VirtualMemory's, under its locks. Stays in the program's process over a suspend, as the handles do.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "intercept/session/memory/exported-memory.h"
#include "intercept/session/memory/host-physical.h"

namespace vgpu::client {

struct Physical {
  uint64_t bytes;
  CUmemAllocationProp properties;
  uint64_t memory;                       // the handle by which the worker knows it: its own, or another one of the same memory,
  uint64_t imports = 0;                  // of which there are so many
  uint64_t handles = 1, mappings = 0;
  std::vector<ExportedMemory> exports{};
  std::optional<SharedName> name{};      // by which other sessions find it, once it has been exported
  std::optional<HostPhysical> host{};

  // Whose thread its frames are for.
  unsigned device() const;
};

class Physicals {
 public:
  void add(uint64_t handle, Physical&& physical) { entries.emplace(handle, std::move(physical)); }
  Physical& at(uint64_t handle) { return entries.at(handle); }
  const Physical& at(uint64_t handle) const { return entries.at(handle); }
  // That the program has a handle of; that is at least mapped still. nullptr if there is none.
  Physical* findLive(uint64_t handle);
  const Physical* find(uint64_t handle) const;
  // One that other sessions find by that name.
  const Physical* named(const SharedName& name) const;
  // Another handle of that memory.
  void import(uint64_t handle, const Physical& physical);
  // What nobody can reach any more but by one of `kept`. 0: nothing.
  uint64_t findUnused(const std::vector<uint64_t>& kept);
  void remove(uint64_t handle);
  // Nobody has anything of that device by a handle any more.
  void letGo(unsigned device);

 private:
  std::map<uint64_t, Physical> entries;  // by handle
};

}  // namespace vgpu::client
