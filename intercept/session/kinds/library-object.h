#pragma once

#include <array>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "intercept/session/kinds/head.h"
#include "vgpu/api/library.h"

namespace vgpu::client {

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

  // The calls that set it, for a captured call (captured-settings.h): the latest of each key, in the order in which they were
  // made.
  struct Call {
    uint64_t key = 0, entry = 0;
    uint32_t hostMask = 0;
    std::vector<std::byte> block;
  };
  const std::vector<Call>& calls() const { return kept; }
  void keep(Call call) {
    std::erase_if(kept, [&](const Call& earlier) { return earlier.key == call.key; });
    kept.push_back(std::move(call));
  }

 private:
  struct Setting {
    uint64_t key = 0, value = 0;
  };
  std::array<Setting, 48> settings{};
  std::vector<Call> kept;
  std::atomic<uint64_t> whole;
};

struct LibraryObjectState : ObjectHead {
  std::unique_ptr<LibraryObject> object;

  void reset() { object.reset(); }
};

}  // namespace vgpu::client
