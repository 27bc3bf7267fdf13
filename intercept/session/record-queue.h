// Frames on their way to the object list, packed one behind the other into one buffer: what queues a frame allocates nothing, and
// what empties the queue frees nothing.
//
// Plain state of Recorder, which synchronizes it.
#pragma once

#include <kj/array.h>

#include <cstddef>
#include <cstring>
#include <memory>

#include "vgpu/objects/object-list.h"
#include "vgpu/wire/ring.h"

namespace vgpu::client {

class RecordQueue {
 public:
  explicit RecordQueue(size_t capacity) : buffer(std::make_unique_for_overwrite<std::byte[]>(capacity)) {}

  // Of one with the largest message.
  static constexpr size_t mostBytesOfFrame() { return bytesFor(maxMessageWords); }
  // There is room for it.
  void add(const FrameFacts& facts, kj::ArrayPtr<const capnp::word> words) {
    const Head head{facts, words.size()};
    std::memcpy(buffer.get() + used, &head, sizeof head);
    std::memcpy(buffer.get() + used + sizeof head, words.begin(), words.size() * sizeof(capnp::word));
    used += bytesFor(words.size());
    ++count;
  }

  // In the order of add(). The frame's words lie in the buffer.
  template <typename Visit>
  void visit(Visit&& visit) const {
    for (size_t at = 0; at < used;) {
      Head head;
      std::memcpy(&head, buffer.get() + at, sizeof head);
      auto* words = reinterpret_cast<capnp::word*>(buffer.get() + at + sizeof head);
      visit(RecordedFrame{head.facts, kj::Array<capnp::word>(words, head.words, kj::NullArrayDisposer::instance)});
      at += bytesFor(head.words);
    }
  }
  void clear() { used = count = 0; }

  size_t bytes() const { return used; }
  size_t frames() const { return count; }

 private:
  struct Head {
    FrameFacts facts;
    size_t words;
  };
  static constexpr size_t bytesFor(size_t words) { return sizeof(Head) + words * sizeof(capnp::word); }
  static_assert(sizeof(Head) % sizeof(capnp::word) == 0);

  std::unique_ptr<std::byte[]> buffer;  // of the system's untouched pages, until they are used
  size_t used = 0, count = 0;
};

}  // namespace vgpu::client
