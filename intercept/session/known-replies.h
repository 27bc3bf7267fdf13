// What the driver has said of one object, kept until the object or its device changes: a query is a round trip once.
//
// A change begins a new generation, in which nothing is known. It may overtake a query that is on its way, whose reply is then
// of before the change: a reply is kept only if the generation is still that of the time when it was asked for.
//
// Part of the object's entry, for any thread; `mutex` is a leaf. What was known before a suspend is asked for anew after it: the
// device is another one then, and its driver may be.
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <mutex>
#include <optional>
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

  // `deviceChanges` is raised by who changes what the driver says of all objects of the device.
  explicit KnownReplies(const std::atomic<uint64_t>& deviceChanges) : deviceChanges(deviceChanges) {}

  uint64_t generation() const;
  std::optional<uint64_t> find(const Question& question) const;
  void keep(uint64_t generation, const Question& question, uint64_t reply);
  // The object has changed.
  void forget();

 private:
  // Both only grow, so the sum is another one after any change.
  uint64_t now() const { return changes + deviceChanges.load(); }

  // A program that asks with ever other arguments begins anew here.
  static constexpr size_t most = 4096;

  const std::atomic<uint64_t>& deviceChanges;
  mutable std::mutex mutex;
  std::vector<std::pair<Question, uint64_t>> replies;  // by question
  uint64_t repliesGeneration = 0;
  uint64_t changes = 0;
};

}  // namespace vgpu::client
