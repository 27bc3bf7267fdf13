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
  uint64_t reply = 0;
  return findWords(question, {&reply, 1}) ? std::optional(reply) : std::nullopt;
}

void KnownReplies::keep(uint64_t generation, const Question& question, uint64_t reply) {
  keepWords(generation, question, {&reply, 1});
}

bool KnownReplies::findWords(Question question, std::span<uint64_t> words) const {
  std::lock_guard lock(mutex);
  if (repliesGeneration != now()) return false;
  auto place = placeOf(replies, question);
  for (uint64_t& word : words) {
    if (place == replies.end() || place->first != question) return false;
    word = place++->second;
    ++question.arguments.back();
  }
  return true;
}

void KnownReplies::keepWords(uint64_t generation, Question question, std::span<const uint64_t> words) {
  std::lock_guard lock(mutex);
  if (generation != now()) return;
  if (generation != repliesGeneration || replies.size() + words.size() > most) replies.clear();
  repliesGeneration = generation;
  for (uint64_t word : words) {
    auto place = placeOf(replies, question);
    if (place != replies.end() && place->first == question) {
      place->second = word;
    } else {
      replies.insert(place, {question, word});
    }
    ++question.arguments.back();
  }
}

void KnownReplies::forget() {
  std::lock_guard lock(mutex);
  ++changes;
}

}  // namespace vgpu::client
