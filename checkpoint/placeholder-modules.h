// The memory of modules' variables, kept full, so that the driver has no choice where to put one.
//
// What a driver does (watched on an H200, driver 580.159; the emulated device does the same): each variable has a piece
// of its own of whole granules of 256 bytes. Small ones lie in chunks of 2 MiB, at the beginning of the smallest gap
// that is large enough, the one that has been there longest where several are; a chunk is made where there is none, at
// the lowest free place, and goes with its last piece. Those of 2 MiB and more have chunks of their own. A module's
// .const variables are one piece. Modules without variables take nothing.
//
// A placeholder module is a module of one variable. Where all is full but one gap, the next placeholder module of that size
// lies there, whatever the driver's rule.
#pragma once

#include <map>
#include <optional>

#include "stub/worker/session-state.h"

namespace vgpu::checkpoint {

constexpr uint64_t variableGranule = 256, variableChunk = uint64_t{2} << 20;

class PlaceholderModules {
 public:
  // A bound on time: a driver compiles each placeholder module, in about a millisecond.
  static constexpr size_t mostLoads = 8192;

  explicit PlaceholderModules(stub::SessionState& on) : on(on) {}
  ~PlaceholderModules();
  PlaceholderModules(const PlaceholderModules&) = delete;

  // Fills chunks, from the lowest free one up, until all of `wanted` (address to device) are full, or lie below.
  void fill(std::map<uint64_t, unsigned> wanted);
  // Whether [begin, end) is full of placeholder modules now that none reaches over either end.
  bool cut(unsigned device, uint64_t begin, uint64_t end);
  // Whether nothing but placeholder modules is there.
  bool cover(uint64_t begin, uint64_t end) const;
  // Unloads the placeholder modules of a range that was cut.
  void open(uint64_t begin, uint64_t end);
  // Fills an open range again.
  bool close(unsigned device, uint64_t begin, uint64_t end);

 private:
  struct PlaceholderModule {
    uint64_t bytes;
    unsigned device;
    CUmodule module;
  };
  using Map = std::map<uint64_t, PlaceholderModule>;
  std::optional<uint64_t> load(unsigned device, uint64_t bytes);
  bool loadAt(unsigned device, uint64_t address, uint64_t bytes);
  Map::iterator unload(Map::iterator placeholder);
  bool cutAt(unsigned device, uint64_t address);

  stub::SessionState& on;
  Map placeholders;  // by address
  size_t loads = 0;
};

}  // namespace vgpu::checkpoint
