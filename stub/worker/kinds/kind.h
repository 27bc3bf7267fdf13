// What a worker does with one kind of object: execute its calls, drop, save, restore and compare its objects, all in the file of the kind's
// name. The end of a device, save and restore iterate over the table of kinds and name none of them.
//
// A snapshot keeps each object's recipe, and for many kinds nothing else. What a recipe does not remake is state: a row for each object
// (for memory, each range), and the row's bytes on the device.
//
// Calls are executed by the thread of their GPU; the rest is used while no calls are executed. Rows come from a snapshot, which is not
// trusted: isValid() checks each first.
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

  // Drops the module's state of one GPU, except handles, after its objects have ended with the context.
  void (*drop)(Execution& on) = nullptr;
  // Destroys the objects of one GPU, which is idle, when the session has ended; handles that remain are destroyed in the order of the table
  // of entries. CUDA's result.
  CUresult (*destroy)(Execution& on) = nullptr;

  // The columns of a row, one letter each: n a number, t a time in milliseconds, s text. Without columns there is no state.
  const char* columns = "";
  // Whether a row with these columns is valid in a session with this many devices.
  bool (*isValid)(const Row& row, uint64_t devices) = nullptr;
  // Returns rows for all objects of all devices, always in the same order. Throws kj::Exception with a message for the user if an object
  // cannot be saved.
  Rows (*save)(SessionState& session) = nullptr;
  // Calls `visit` for each object that save() refuses, with its name and the reason, as text for the user.
  void (*obstacles)(SessionState& session, const Obstacle& visit) = nullptr;
  // Before the recipes are executed: says what the objects that they make must be like.
  void (*prepare)(SessionState& session, const Rows& rows) = nullptr;
  // After the recipes. Throws kj::Exception that names an object which is missing or differs.
  void (*compare)(SessionState& session, const Rows& rows) = nullptr;
  // Restores what neither recipes nor bytes restore.
  void (*restore)(SessionState& session, const Rows& rows) = nullptr;

  // The number of bytes that belong to a row; without this function there are none.
  uint64_t (*bytes)(const Row& row) = nullptr;
  // The device that has the bytes; without this function, a caller that needs them must wait for all devices.
  unsigned (*device)(const Row& row) = nullptr;
  // Their address in its memory, where they are contiguous; without this function they are not.
  uint64_t (*address)(const Row& row) = nullptr;
  // Copies [offset, offset + bytes) of the row's bytes. `out` and `in` are host memory; `in` may be nullptr for zeros. The copies may still
  // be pending when the function returns, in that device's DeviceProgress::ownStream().
  void (*read)(SessionState& session, const Row& row, uint64_t offset, std::byte* out, size_t bytes) = nullptr;
  void (*write)(SessionState& session, const Row& row, uint64_t offset, const std::byte* in, size_t bytes) = nullptr;
};

// One for each module of the table (vgpu/api/cuda.table): memoryKind for `memory`, defined in the file of that name.
#define KIND_MODULE(module) extern const KindModule module;
#include "cuda-kind-modules.inc"

// In the order in which a snapshot stores their state and bytes.
std::span<const KindModule* const> kinds();

// Starts to copy bytes of device memory, for a kind whose bytes are there. Throws kj::Exception.
void readDevice(SessionState& session, unsigned device, uint64_t address, std::byte* out, size_t bytes);
void writeDevice(SessionState& session, unsigned device, uint64_t address, const std::byte* in, size_t bytes);

}  // namespace vgpu::stub
