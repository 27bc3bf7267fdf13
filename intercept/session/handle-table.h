// The program's handles: which are live, and what the client must know of each object.
//
// Owned by the session. Looking a handle up takes no lock: entries never move, and an entry with a different handle belongs to
// another object. Making and dropping handles takes `mutex`; after it only that of CompletionWords is taken. All of it stays in
// the program's process over a suspend.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "intercept/session/event-record.h"
#include "intercept/session/known-replies.h"
#include "intercept/session/stream-depth.h"
#include "vgpu/api/handle.h"
#include "vgpu/api/library.h"

namespace vgpu::client {

struct FunctionLayout {
  explicit FunctionLayout(const std::atomic<uint64_t>& deviceChanges) : replies(deviceChanges) {}

  struct Parameter {
    uint32_t offset, bytes;
  };
  uint64_t module = 0;
  std::string name;
  std::vector<Parameter> parameters;
  uint32_t parameterBytes = 0;
  uint32_t maxThreadsPerBlock = 0, staticSharedBytes = 0;
  std::atomic<uint32_t> maxDynamicSharedBytes{0};
  KnownReplies replies;  // to queries about the function
};

// An array's description by the program, or by the worker for a level of a mipmapped array.
struct ArrayLayout {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  uint32_t elementBytes = 0;
  uint64_t mipmap = 0;  // the mipmapped array of which this is a level

  uint64_t rowBytes() const { return shape.Width * elementBytes; }
  uint64_t rows() const { return shape.Height == 0 ? 1 : shape.Height; }
  uint64_t slices() const { return shape.Depth == 0 ? 1 : shape.Depth; }
  CUDA_ARRAY_DESCRIPTOR flatShape() const { return {shape.Width, shape.Height, shape.Format, shape.NumChannels}; }
};

// An object of a library that has a face. As a library's, it is not to be changed by two threads at a time.
class LibraryObject {
 public:
  // `place`: the program's memory in which the object lies, or ours that the program has the address of; null if its handle is the
  // virtual one.
  LibraryObject(uint8_t type, uint64_t content, void* place, bool isOurs)
      : type(type), place(place), ours(isOurs ? place : nullptr, std::free), whole(content) {}

  const uint8_t type;  // its place in api::objectTypes
  void* const place;
  const std::unique_ptr<void, void (*)(void*)> ours;
  std::array<std::atomic<uint64_t>, api::memberCount> members{};

  // A digest of how it was made and of the latest that has been set of each key: the same for objects that are alike.
  uint64_t content() const { return whole.load(std::memory_order_relaxed); }
  void set(uint64_t key, uint64_t value) {
    for (auto& setting : settings) {
      if (setting.key != 0 && setting.key != key) continue;
      whole.fetch_add(value - setting.value, std::memory_order_relaxed);
      setting = {key, value};
      return;
    }
    whole.fetch_add(value, std::memory_order_relaxed);  // more keys than any library has: the digest is another one each time
  }

 private:
  struct Setting {
    uint64_t key = 0, value = 0;
  };
  std::array<Setting, 48> settings{};
  std::atomic<uint64_t> whole;
};

struct ObjectEntry {
  std::atomic<uint64_t> handle{0};   // 0: free
  std::atomic<uint64_t> context{0};  // in which it was made and with which it ends; 0: it ends with another object
  std::atomic<uint64_t> lastWork{0}; // of a stream: sequence number of its last frame
  std::atomic<uint64_t> knownDone{0};  // of a stream: everything up to this sequence number has ended
  std::atomic<uint64_t> stream{0};   // of an event: the stream in which it was last recorded
  std::atomic<uint32_t> flags{0};    // of a stream, event or context
  int32_t priority = 0;              // of a stream
  EventRecord record;                // of an event
  uint64_t blob = 0;                 // of a module
  uint32_t generation = 0, nextFree = 0;  // the table's own
  std::unique_ptr<FunctionLayout> function;
  std::unique_ptr<ArrayLayout> array;  // of an array or a mipmapped one
  std::unique_ptr<LibraryObject> library;
  StreamDepth depth;                   // of a stream

  // Of a live entry.
  unsigned device() const { return handleDevice(handle.load(std::memory_order_relaxed)); }
};

class HandleTable {
 public:
  // A new handle of `kind`; its entry is the caller's to fill before it hands the handle to the program.
  uint64_t create(api::Kind kind, unsigned device, uint64_t context = 0) {
    uint64_t handle = reserve(kind, device);
    publish(handle, context, [](ObjectEntry&) {});
    return handle;
  }
  // The same in two steps, for an object that can be found by other ways than its handle: it is invisible before publish(), which
  // fills it. abandon() gives a reserved handle back.
  uint64_t reserve(api::Kind kind, unsigned device);
  template <typename Fill>
  void publish(uint64_t handle, uint64_t context, Fill&& fill) {
    ObjectEntry& entry = entryAt(handleIndex(handle));
    entry.context.store(context, std::memory_order_relaxed);
    entry.lastWork.store(0, std::memory_order_relaxed);
    entry.knownDone.store(0, std::memory_order_relaxed);
    entry.stream.store(0, std::memory_order_relaxed);
    entry.record.reset();
    entry.depth.reset();
    fill(entry);
    entry.handle.store(handle, std::memory_order_release);
  }
  void abandon(uint64_t handle);
  // The entry of a live handle of `kind`; nullptr if there is none.
  ObjectEntry* find(api::Kind kind, uint64_t handle) const {
    uint32_t index = handleIndex(handle);
    if (handleKind(handle) != static_cast<unsigned>(kind) || index >= chunkCount * chunkEntries) return nullptr;
    auto* chunk = chunks[index / chunkEntries].load(std::memory_order_acquire);
    if (chunk == nullptr) return nullptr;
    ObjectEntry& entry = (*chunk)[index % chunkEntries];
    return entry.handle.load(std::memory_order_acquire) == handle ? &entry : nullptr;
  }
  // False if it is not live: of several callers one ends it. That caller's `last` is called with the entry, under the lock,
  // before the entry is reused.
  template <typename Last>
  bool destroy(uint64_t handle, Last&& last) {
    std::lock_guard lock(mutex);
    ObjectEntry* entry = end(handle);
    if (entry == nullptr) return false;
    last(*entry);
    putLast(handleIndex(handle));
    return true;
  }
  bool destroy(uint64_t handle) {
    return destroy(handle, [](ObjectEntry&) {});
  }

  // Every live handle of `kind` on `device`; only those of `context` if one is given.
  std::vector<uint64_t> live(api::Kind kind, unsigned device, uint64_t context = 0) const;

 private:
  static constexpr uint32_t chunkEntries = 1024, chunkCount = 1024;
  using Chunk = std::array<ObjectEntry, chunkEntries>;

  ObjectEntry& entryAt(uint32_t index) const {
    return (*chunks[index / chunkEntries].load(std::memory_order_acquire))[index % chunkEntries];
  }

  void addChunk();
  ObjectEntry* end(uint64_t handle);
  void putLast(uint32_t index);

  mutable std::mutex mutex;
  std::array<std::atomic<Chunk*>, chunkCount> chunks{};
  std::vector<std::unique_ptr<Chunk>> owned;
  // A list through the free entries, so that destroying an object needs no memory.
  static constexpr uint32_t none = ~uint32_t{0};
  uint32_t firstFree = none, lastFree = none;
};

}  // namespace vgpu::client
