// The driver's replies to queries about one object, or about a device and what is on it, kept until that changes: only the first
// query is a round trip.
//
// A change begins a new generation, which is empty. It may happen during a query whose reply then describes the state before the
// change: a reply is kept only if the generation has not changed since the query was sent.
//
// Part of the object's entry, or of the session; for any thread; `mutex` is a leaf. After a suspend the replies are asked for
// anew: the device is another one then, and its driver may be.
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuda-methods.h"

namespace vgpu::client {

class KnownReplies {
 public:
  struct Question {
    api::Method method;
    std::array<uint64_t, 3> arguments{};
    auto operator<=>(const Question&) const = default;
  };

  // `deviceChanges` is incremented by a change that affects the driver's replies for all objects of the device.
  explicit KnownReplies(const std::atomic<uint64_t>& deviceChanges) : deviceChanges(deviceChanges) {}

  uint64_t generation() const;
  std::optional<uint64_t> find(const Question& question) const;
  void keep(uint64_t generation, const Question& question, uint64_t reply);
  // The same for a structure, whose words are the replies to questions with the words' places as their last argument.
  template <typename Value>
  requires std::is_class_v<Value> || std::is_union_v<Value>
  bool find(const Question& question, Value& value) const {
    std::array<uint64_t, wordsOf<Value>> words;
    if (!findWords(question, words)) return false;
    std::memcpy(&value, words.data(), sizeof value);
    return true;
  }
  template <typename Value>
  requires std::is_class_v<Value> || std::is_union_v<Value>
  void keep(uint64_t generation, const Question& question, const Value& value) {
    std::array<uint64_t, wordsOf<Value>> words;
    std::memcpy(words.data(), &value, sizeof value);
    keepWords(generation, question, words);
  }
  // The object has changed.
  void forget();

 private:
  template <typename Value>
  static constexpr size_t wordsOf = sizeof(Value) / sizeof(uint64_t);

  bool findWords(Question question, std::span<uint64_t> words) const;
  void keepWords(uint64_t generation, Question question, std::span<const uint64_t> words);

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

}  // namespace vgpu::client
