// The driver's replies to queries about one object, or about a device and its contents, kept until the object changes: only the first query
// is a round trip.
//
// A change starts a new, empty generation. It may happen during a query, whose reply then describes the state before the change: a reply is
// kept only if the generation is the same as when the query was sent.
//
// Part of the object's entry, or of the session. Any thread; `mutex` is a leaf lock. Not kept over a suspend: the device is another one
// afterwards, and perhaps its driver.
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
  // A question with arbitrary arguments, identified by 128 bits of digests.
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
  // The same for a reply of several words: answers to questions that differ only in their last argument, which starts at 0; the first
  // answer is the number of words. Longer replies are not kept.
  static constexpr size_t mostWords = 32;
  size_t find(Question question, std::span<capnp::word, mostWords> words) const;
  void keep(uint64_t generation, Question question, kj::ArrayPtr<const capnp::word> words);
  // The object has changed.
  void forget();

 private:
  bool beginsToKeep(uint64_t generation, size_t words);
  void put(const Question& question, uint64_t reply);

  // Both only increase, so the sum differs after any change.
  uint64_t now() const { return changes + deviceChanges.load(); }

  // Limit of the table; a program that keeps asking with new arguments makes it start over.
  static constexpr size_t most = 4096;

  const std::atomic<uint64_t>& deviceChanges;
  mutable std::mutex mutex;
  std::vector<std::pair<Question, uint64_t>> replies;  // by question
  uint64_t repliesGeneration = 0;
  uint64_t changes = 0;
};

// The reply to one query, known or requested. Local to a call.
class Reply {
 public:
  // `changes`: the reply may differ each time, so it is not looked up.
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
  const size_t known;         // how many words are known; 0: to be requested
  const uint64_t generation;  // the generation at the request
  kj::Array<capnp::word> asked;
};

}  // namespace vgpu::client
