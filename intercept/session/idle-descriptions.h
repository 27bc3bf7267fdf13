// Descriptions of libraries (cuBLASLt's layouts, descriptors, preferences) that the program has destroyed and the worker still has: one
// that is made and set alike takes such a one over, without a frame. Frameworks describe each product of matrices anew.
//
// Of a session; any thread. `mutex` is a leaf. All of it stays over a suspend, and is not used again after it (LibraryObject::content):
// of what a snapshot has of a description, a setting may be left out that names memory which has ended.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>

#include "intercept/session/digest.h"
#include "intercept/session/kinds/library-object.h"

namespace vgpu::client {

class IdleDescriptions {
 public:
  struct Idle {
    uint64_t handle = 0;                         // in the worker
    const api::LibraryEntry* destroy = nullptr;  // null: the program ended it otherwise
    uint64_t content = 0;
    LibraryObject::Later later;
    std::vector<LibraryObject::Call> settings;
  };

  // The handle of one that is exactly like `wanted`, of its device and context, no more idle; 0 if there is none.
  uint64_t take(const LibraryObject& wanted) {
    std::lock_guard lock(mutex);
    auto [from, to] = all.equal_range(keyOf(wanted.content(), wanted.later->made, wanted.calls()));
    for (auto at = from; at != to; ++at) {
      if (!isLike(at->second, wanted)) continue;
      const uint64_t handle = at->second.handle;
      all.erase(at);
      return handle;
    }
    return 0;
  }

  // Keeps one. Another one that is to be ended, if there are too many.
  std::optional<Idle> keep(Idle idle) {
    std::lock_guard lock(mutex);
    const uint64_t key = keyOf(idle.content, idle.later.made, idle.settings);
    std::optional<Idle> ended;
    if (all.size() == most) {
      auto first = all.begin();
      ended = std::move(first->second);
      all.erase(first);
    }
    all.emplace(key, std::move(idle));
    return ended;
  }

 private:
  static constexpr size_t most = 1024;

  // The first word of a block of a setting is the object itself.
  static std::span<const std::byte> givenIn(const LibraryObject::Call& setting) {
    return std::span(setting.block).subspan(std::min(setting.block.size(), sizeof(uint64_t)));
  }
  static uint64_t keyOf(uint64_t content, const LibraryObject::Call& made, const std::vector<LibraryObject::Call>& settings) {
    uint64_t key = mixedBytes(content, made.block);
    for (auto& setting : settings) key = mixedBytes(key, givenIn(setting));
    return key;
  }
  static bool isLike(const Idle& idle, const LibraryObject& wanted) {
    auto isSame = [](const LibraryObject::Call& a, const LibraryObject::Call& b) {
      return a.row == b.row && a.hostMask == b.hostMask && std::ranges::equal(givenIn(a), givenIn(b));
    };
    const LibraryObject::Later &has = idle.later, &wants = *wanted.later;
    return has.device == wants.device && has.context == wants.context && idle.content == wanted.content() &&
           has.made.row == wants.made.row && has.made.block == wants.made.block && std::ranges::equal(idle.settings, wanted.calls(), isSame);
  }

  std::mutex mutex;
  std::unordered_multimap<uint64_t, Idle> all;
};

}  // namespace vgpu::client
