// Physical memory of which a program has handles (cuMemCreate, cuMemImportFromShareableHandle). Each import has its own handle, even of
// memory that the program has already: as in CUDA, each handle is released separately, and only the handle that created the memory can
// export it.
//
// Owned by VirtualMemory, under its locks. Stays in the program's process over a suspend, as the handles do.
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
  uint64_t memory;                       // the worker's handle of the memory: this entry's, or the entry's that it was imported from
  uint64_t imports = 0;                  // how many other entries have this entry's handle as `memory`
  uint64_t handles = 1, mappings = 0;
  std::vector<ExportedMemory> exports{};
  std::optional<SharedName> name{};      // by which other sessions find it, once it is exported
  std::optional<HostPhysical> host{};

  // The device whose worker thread executes its frames.
  unsigned device() const;
};

class Physicals {
 public:
  void add(uint64_t handle, Physical&& physical) { entries.emplace(handle, std::move(physical)); }
  Physical& at(uint64_t handle) { return entries.at(handle); }
  const Physical& at(uint64_t handle) const { return entries.at(handle); }
  // findLive(): memory of which the program has a handle. find(): also memory that is only mapped. nullptr if there is none.
  Physical* findLive(uint64_t handle);
  const Physical* find(uint64_t handle) const;
  // The memory that other sessions find by that name.
  const Physical* named(const SharedName& name) const;
  // Adds another handle of the same memory.
  void import(uint64_t handle, const Physical& physical);
  // Memory that is no longer reachable, other than those in `kept`; 0: none.
  uint64_t findUnused(const std::vector<uint64_t>& kept);
  void remove(uint64_t handle);
  // Drops all handles and exports of that device's memory.
  void letGo(unsigned device);

 private:
  std::map<uint64_t, Physical> entries;  // by handle
};

}  // namespace vgpu::client
