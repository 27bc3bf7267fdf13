#include "intercept/session/known-replies.h"

#include <algorithm>
#include <cstring>

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
  return place != replies.end() && place->first == question ? std::optional(place->second) : std::nullopt;
}

void KnownReplies::keep(uint64_t generation, const Question& question, uint64_t reply) {
  std::lock_guard lock(mutex);
  if (beginsToKeep(generation, 1)) put(question, reply);
}

size_t KnownReplies::find(Question question, std::span<capnp::word, mostWords> words) const {
  std::lock_guard lock(mutex);
  if (repliesGeneration != now()) return 0;
  auto place = placeOf(replies, question);
  if (place == replies.end() || place->first != question) return 0;
  const size_t count = place->second;
  for (size_t i = 0; i < count; ++i) std::memcpy(static_cast<void*>(&words[i]), &(++place)->second, sizeof(capnp::word));
  return count;
}

void KnownReplies::keep(uint64_t generation, Question question, kj::ArrayPtr<const capnp::word> words) {
  std::lock_guard lock(mutex);
  if (words.size() > mostWords || !beginsToKeep(generation, words.size() + 1)) return;
  put(question, words.size());
  for (auto& word : words) {
    uint64_t number;
    std::memcpy(&number, &word, sizeof number);
    ++question.arguments.back();
    put(question, number);
  }
}

// Whether a reply of that generation, with that many words, may be kept.
bool KnownReplies::beginsToKeep(uint64_t generation, size_t words) {
  if (generation != now()) return false;
  if (generation != repliesGeneration || replies.size() + words > most) replies.clear();
  repliesGeneration = generation;
  return true;
}

void KnownReplies::put(const Question& question, uint64_t reply) {
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

void Reply::keep(kj::ArrayPtr<const capnp::word> answered) {
  replies.keep(generation, question, answered);
  asked = kj::heapArray<capnp::word>(answered.begin(), answered.size());
}

}  // namespace vgpu::client
