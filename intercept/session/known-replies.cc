#include "intercept/session/known-replies.h"

#include <algorithm>

namespace vgpu::client {

namespace {

auto placeOf(auto& replies, const KnownReplies::Question& question) {
  return std::lower_bound(replies.begin(), replies.end(), question,
                          [](auto& reply, auto& wanted) { return reply.first < wanted; });
}

}  // namespace

uint64_t KnownReplies::generation() const {
  std::lock_guard lock(mutex);
  return now();
}

std::optional<uint64_t> KnownReplies::find(const Question& question) const {
  std::lock_guard lock(mutex);
  if (repliesGeneration != now()) return std::nullopt;
  auto place = placeOf(replies, question);
  if (place == replies.end() || place->first != question) return std::nullopt;
  return place->second;
}

void KnownReplies::keep(uint64_t generation, const Question& question, uint64_t reply) {
  std::lock_guard lock(mutex);
  if (generation != now()) return;
  if (generation != repliesGeneration || replies.size() == most) replies.clear();
  repliesGeneration = generation;
  auto place = placeOf(replies, question);
  if (place != replies.end() && place->first == question) {
    place->second = reply;
  } else {
    replies.insert(place, {question, reply});
  }
}

void KnownReplies::forget() {
  std::lock_guard lock(mutex);
  ++changes;
}

}  // namespace vgpu::client
