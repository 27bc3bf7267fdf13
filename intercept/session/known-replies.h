// The driver's replies to queries about one object, or about a device and what is on it, kept until that changes: only the first
// query is a round trip.
//
// A change begins a new generation, which is empty. It may happen during a query whose reply then describes the state before the
// change: a reply is kept only if the generation has not changed since the query was sent.
//
// Part of the object's entry, or of the session; for any thread; `mutex` is a leaf. After a suspend the replies are asked for
// anew: the device is another one then, and its driver may be.
#pragma once

#include <capnp/common.h>
#include <kj/array.h>

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cuda-methods.h"
#include "intercept/session/digest.h"
#include "vgpu/api/flat-frame.h"

namespace vgpu::client {

class KnownReplies {
 public:
  struct Question {
    api::Method method;
    std::array<uint64_t, 3> arguments{};
    auto operator<=>(const Question&) const = default;
  };
  // A question of any arguments, told from others by 128 bits of digests.
  class Asked {
   public:
    explicit Asked(api::Method method) : method(method) {}
    Asked& add(uint64_t number) {
      one = mixed(one, number);
      other = mixed(other, ~number);
      return *this;
    }
    Asked& add(kj::ArrayPtr<const kj::byte> bytes) {
      const auto words = std::as_bytes(std::span(bytes.begin(), bytes.size()));
      one = mixedBytes(mixed(one, bytes.size()), words);
      other = mixedBytes(other, words, [](uint64_t word) { return ~word; });
      return *this;
    }
    operator Question() const { return {method, {one, other}}; }

   private:
    api::Method method;
    uint64_t one = 0, other = 1;
  };

  // `deviceChanges` is incremented by a change that affects the driver's replies for all objects of the device.
  explicit KnownReplies(const std::atomic<uint64_t>& deviceChanges) : deviceChanges(deviceChanges) {}

  uint64_t generation() const;
  std::optional<uint64_t> find(const Question& question) const;
  void keep(uint64_t generation, const Question& question, uint64_t reply);
  // The same for a reply of several words: the answers to questions that differ in their last argument, which is 0: the first is their
  // number. Longer ones are not kept.
  static constexpr size_t mostWords = 32;
  size_t find(Question question, std::span<capnp::word, mostWords> words) const;
  void keep(uint64_t generation, Question question, kj::ArrayPtr<const capnp::word> words);
  // The object has changed.
  void forget();

 private:
  bool beginsToKeep(uint64_t generation, size_t words);
  void put(const Question& question, uint64_t reply);

  // Both only grow, so the sum differs after any change.
  uint64_t now() const { return changes + deviceChanges.load(); }

  // A program that always asks with different arguments makes the table start anew.
  static constexpr size_t most = 4096;

  const std::atomic<uint64_t>& deviceChanges;
  mutable std::mutex mutex;
  std::vector<std::pair<Question, uint64_t>> replies;  // by question
  uint64_t repliesGeneration = 0;
  uint64_t changes = 0;
};

// The reply to one query, known or asked for. A call's own.
class Reply {
 public:
  // `changes`: it may be another one each time.
  Reply(KnownReplies& replies, const KnownReplies::Question& question, bool changes = false)
      : replies(replies),
        question(question),
        known(changes ? 0 : replies.find(question, words)),
        generation(isKnown() ? 0 : replies.generation()) {}

  bool isKnown() const { return known != 0; }
  void keep(kj::ArrayPtr<const capnp::word> answered);
  template <typename Results>
  api::FrameReader<Results> results() const {
    return api::FrameReader<Results>(isKnown() ? kj::arrayPtr(words.data(), known) : asked);
  }

 private:
  KnownReplies& replies;
  const KnownReplies::Question question;
  std::array<capnp::word, KnownReplies::mostWords> words;
  const size_t known;         // of these; 0: asked for
  const uint64_t generation;  // in which it is asked for
  kj::Array<capnp::word> asked;
};

}  // namespace vgpu::client
