// Frames queued for the object list, packed into one buffer: queueing a frame allocates nothing, and emptying the queue frees nothing.
//
// State of Recorder, which synchronizes it.
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
  // Room for `bytes`, and one more frame.
  explicit RecordQueue(size_t bytes)
      : buffer(std::make_unique_for_overwrite<capnp::word[]>(bytes / sizeof(capnp::word) + headWords + maxMessageWords)) {}

  // Allowed while at most `bytes` are queued.
  void add(const FrameFacts& facts, kj::ArrayPtr<const capnp::word> words) {
    const Head head{facts, words.size()};
    std::memcpy(static_cast<void*>(buffer.get() + used), &head, sizeof head);
    std::memcpy(buffer.get() + used + headWords, words.begin(), words.size() * sizeof(capnp::word));
    used += headWords + words.size();
    ++count;
  }

  // Visits the frames in the order of add(). A frame's words are in the buffer.
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

  std::unique_ptr<capnp::word[]> buffer;  // not touched, so without physical pages, until used
  size_t used = 0, count = 0;             // words used; frames
};

}  // namespace vgpu::client
