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
  // So many bytes, and a frame.
  explicit RecordQueue(size_t bytes)
      : buffer(std::make_unique_for_overwrite<capnp::word[]>(bytes / sizeof(capnp::word) + headWords + maxMessageWords)) {}

  // As long as there are no more bytes than that.
  void add(const FrameFacts& facts, kj::ArrayPtr<const capnp::word> words) {
    const Head head{facts, words.size()};
    std::memcpy(static_cast<void*>(buffer.get() + used), &head, sizeof head);
    std::memcpy(buffer.get() + used + headWords, words.begin(), words.size() * sizeof(capnp::word));
    used += headWords + words.size();
    ++count;
  }

  // In the order of add(). The frame's words lie in the buffer.
  template <typename Visit>
  void visit(Visit&& visit) const {
    for (size_t at = 0; at < used;) {
      Head head;
      std::memcpy(static_cast<void*>(&head), buffer.get() + at, sizeof head);
      capnp::word* words = buffer.get() + at + headWords;
      visit(RecordedFrame{head.facts, kj::Array<capnp::word>(words, head.words, kj::NullArrayDisposer::instance)});
      at += headWords + head.words;
    }
  }
  void clear() { used = count = 0; }

  size_t bytes() const { return used * sizeof(capnp::word); }
  size_t frames() const { return count; }

 private:
  struct Head {
    FrameFacts facts;
    size_t words;
  };
  static constexpr size_t headWords = sizeof(Head) / sizeof(capnp::word);
  static_assert(sizeof(Head) % sizeof(capnp::word) == 0);

  std::unique_ptr<capnp::word[]> buffer;  // of the system's untouched pages, until they are used
  size_t used = 0, count = 0;             // words of it; frames
};

}  // namespace vgpu::client
