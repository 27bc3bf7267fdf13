// What a worker does with one kind of object: execute its calls, drop, save, restore and compare its objects, side by side in the
// file of the kind's name. The end of a device, save and restore go over the table of kinds and know none of them by name.
//
// A snapshot keeps each object's recipe, and for many kinds nothing else. What a recipe does not bring back is state: a row for
// each object (for memory, each range), and bytes on the device behind a row.
//
// Calls are executed by the thread of their GPU; the rest is used while no calls are executed. Rows come from a snapshot, which
// is not trusted: isValid() looks at each first.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "vgpu/objects/state-table.h"

namespace vgpu::stub {

class Execution;
class SessionState;

using Obstacle = std::function<void(const std::string& object, const std::string& why)>;

struct KindModule {
  const char* name;  // of its table in a snapshot

  // What the module keeps of the objects of one GPU, which have ended with its context, besides their handles.
  void (*drop)(Execution& on) = nullptr;
  // Destroys the objects of one GPU, which is idle, when the session has ended; handles that it leaves are destroyed as the table of
  // entries says. CUDA's answer.
  CUresult (*destroy)(Execution& on) = nullptr;

  // The columns of a row, a letter each: n a number, t a time in milliseconds, s text. Without columns there is no state.
  const char* columns = "";
  // Whether a row with these columns can be one of a session with this many devices.
  bool (*isValid)(const Row& row, uint64_t devices) = nullptr;
  // Of all objects of all devices, in the same order whenever it is called. Throws kj::Exception, for a person, if an object
  // cannot be saved.
  Rows (*save)(SessionState& session) = nullptr;
  // Calls `visit` for each object that save() refuses, with its name and the reason, for a person.
  void (*obstacles)(SessionState& session, const Obstacle& visit) = nullptr;
  // Before the recipes are executed: what the objects that they make have to be.
  void (*prepare)(SessionState& session, const Rows& rows) = nullptr;
  // After them. Throws kj::Exception that names an object which is not there or is not what it was.
  void (*compare)(SessionState& session, const Rows& rows) = nullptr;
  // What neither recipes nor bytes bring back.
  void (*restore)(SessionState& session, const Rows& rows) = nullptr;

  // The bytes behind a row; without this function there are none.
  uint64_t (*bytes)(const Row& row) = nullptr;
  // The device that has them; without this function whoever wants to have them waits for all.
  unsigned (*device)(const Row& row) = nullptr;
  // Where they lie in its memory, one behind the other; without this function they do not.
  uint64_t (*address)(const Row& row) = nullptr;
  // Copies [offset, offset + bytes) of them. `out` and `in` are host memory; `in` may be nullptr for zeros. The copies may be on
  // their way when the function returns, in that device's DeviceProgress::ownStream().
  void (*read)(SessionState& session, const Row& row, uint64_t offset, std::byte* out, size_t bytes) = nullptr;
  void (*write)(SessionState& session, const Row& row, uint64_t offset, const std::byte* in, size_t bytes) = nullptr;
};

// One a module of the table (vgpu/api/cuda.table): memoryKind of `memory`, which the file of that name defines.
#define KIND_MODULE(module) extern const KindModule module;
#include "cuda-kind-modules.inc"

// In the order in which a snapshot keeps their state and their bytes.
std::span<const KindModule* const> kinds();

// Begins to copy bytes of device memory, for a kind whose bytes are there. Throws kj::Exception.
void readDevice(SessionState& session, unsigned device, uint64_t address, std::byte* out, size_t bytes);
void writeDevice(SessionState& session, unsigned device, uint64_t address, const std::byte* in, size_t bytes);

}  // namespace vgpu::stub
