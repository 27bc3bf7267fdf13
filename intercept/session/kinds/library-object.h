#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "intercept/session/kinds/head.h"
#include "vgpu/api/library.h"

namespace vgpu::client {

// An object of a library that has a face. As a library's, it is not to be changed by two threads at a time.
class LibraryObject {
 public:
  // `place`: the program's memory in which the object lies, or ours that the program has the address of, with which `end` is
  // called when the object ends; null if its handle is the virtual one.
  LibraryObject(uint8_t type, uint64_t content, void* place, void (*end)(void*))
      : type(type), place(place), ours(end == nullptr ? nullptr : place, end), whole(content) {}

  const uint8_t type;  // its place in api::objectTypes
  void* const place;
  const std::unique_ptr<void, void (*)(void*)> ours;
  std::array<std::atomic<uint64_t>, api::memberCount> members{};

  // A call that has made it, or set something of it. `key`: what it sets.
  struct Call {
    uint64_t key = 0, digest = 0;
    const api::LibraryEntry* row = nullptr;
    uint32_t hostMask = 0;
    std::vector<std::byte> block;
  };
  // A description that the worker need not have before something uses it: how it is made, and where.
  struct Later {
    Call made;
    unsigned device = 0;
    uint64_t context = 0;  // with which it ends
  };
  std::unique_ptr<Later> later;  // null: the worker has had it from the beginning

  // What the worker knows it by; 0 as long as it has none.
  uint64_t remote() const { return inWorker.load(std::memory_order_acquire); }
  bool isPending() const { return remote() == 0; }
  // What has been set is of that handle: the first word of each call's block.
  void nameInCalls(uint64_t handle) {
    for (auto& call : settings)
      if (call.block.size() >= sizeof handle) std::memcpy(call.block.data(), &handle, sizeof handle);
  }
  // The worker has it now, with all that has been set.
  void isThere(uint64_t handle) { inWorker.store(handle, std::memory_order_release); }  // who finds it finds the calls' blocks

  // A digest of how it was made and of the latest call of each key: the same for objects that are alike.
  uint64_t content() const { return whole.load(std::memory_order_relaxed); }
  // The latest call of each key, in the order in which they were made, for a captured call (captured-settings.h).
  const std::vector<Call>& calls() const { return settings; }
  std::vector<Call> takeCalls() { return std::move(settings); }
  void set(Call call) {
    auto earlier = std::ranges::find(settings, call.key, &Call::key);
    uint64_t change = call.digest;
    if (earlier != settings.end()) {
      change -= earlier->digest;
      settings.erase(earlier);
    }
    whole.fetch_add(change, std::memory_order_relaxed);
    settings.push_back(std::move(call));
  }

 private:
  std::vector<Call> settings;
  std::atomic<uint64_t> whole, inWorker{0};
};

struct LibraryObjectState : ObjectHead {
  std::unique_ptr<LibraryObject> object;

  void reset() { object.reset(); }
};

}  // namespace vgpu::client
