// Descriptions of libraries (cuBLASLt's layouts, descriptors, preferences) that the program has destroyed and the worker still has: a new
// one that is made and set identically reuses such a description without a frame. Frameworks describe each matrix product anew.
//
// Owned by the session; any thread; `mutex` is a leaf lock. Survives a suspend, but idle descriptions are not reused after it
// (LibraryObject::content): a snapshot may lack a description's setting that names memory which has ended.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>

#include "intercept/session/kinds/library-object.h"

namespace vgpu::client {

class IdleDescriptions {
 public:
  struct Idle {
    std::unique_ptr<LibraryObject> object;
    const api::LibraryEntry* destroy = nullptr;  // null: it ended otherwise
  };

  // Takes an idle description exactly like `wanted`, of its device and context, and returns its handle; 0 if there is none.
  uint64_t take(const LibraryObject& wanted) {
    std::lock_guard lock(mutex);
    auto [from, to] = all.equal_range(wanted.exactContent());
    for (auto at = from; at != to; ++at) {
      if (!isLike(*at->second.object, wanted)) continue;
      const uint64_t handle = at->second.object->remote();
      all.erase(at);
      return handle;
    }
    return 0;
  }

  // Keeps one. If there are too many, returns another one, to be ended.
  std::optional<Idle> keep(Idle idle) {
    std::lock_guard lock(mutex);
    std::optional<Idle> ended;
    if (all.size() == most) {
      auto first = all.begin();
      ended = std::move(first->second);
      all.erase(first);
    }
    const uint64_t key = idle.object->exactContent();
    all.emplace(key, std::move(idle));
    return ended;
  }

 private:
  static constexpr size_t most = 1024;

  // The bytes after the first word of a setting's block, which is the object itself.
  static std::span<const std::byte> givenIn(const LibraryObject::Call& setting) {
    auto block = setting.block.bytes();
    return block.subspan(std::min(block.size(), sizeof(uint64_t)));
  }
  static bool isLike(const LibraryObject& idle, const LibraryObject& wanted) {
    auto isSame = [](const LibraryObject::Call& a, const LibraryObject::Call& b) {
      return a.row == b.row && a.hostMask == b.hostMask && std::ranges::equal(givenIn(a), givenIn(b));
    };
    const LibraryObject::Later &has = *idle.later, &wants = *wanted.later;
    return has.device == wants.device && has.context == wants.context && has.made.row == wants.made.row &&
           idle.content() == wanted.content() && std::ranges::equal(has.made.block.bytes(), wants.made.block.bytes()) &&
           std::ranges::equal(idle.calls(), wanted.calls(), isSame);
  }

  std::mutex mutex;
  std::unordered_multimap<uint64_t, Idle> all;  // by exact content
};

}  // namespace vgpu::client
