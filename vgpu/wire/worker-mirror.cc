#include "vgpu/wire/worker-mirror.h"

#include <kj/debug.h>

#include <algorithm>
#include <atomic>

#include "vgpu/api/mirrored.h"

namespace vgpu {

using namespace mirror;

namespace {
constexpr uint8_t noDevice = 0xff;
}

WorkerMirror::WorkerMirror(const Segment& segment, Link& link) : segment(segment), link(link), slotDevice(slotCount, noDevice) {
  for (unsigned device = 0; device < maxDevices; ++device) {
    rings.push_back(std::make_unique<RingWriter>(segment, device));
    written[device] = segment.ring(device).head.load();
    tails[device] = segment.ring(device).tail.load();
  }
}

bool WorkerMirror::apply(const LinkMessage& message) {
  auto payload = message.payload;
  switch (static_cast<MirrorMessage>(message.type)) {
    case MirrorMessage::frames:
      applyFrames(payload);
      return true;
    case MirrorMessage::slabLent:
      lend(payload);
      return true;
    case MirrorMessage::answered: {
      auto said = take<WordValue>(payload);
      require(said.word, completionWordCount, "completion word");
      segment.completionWord(said.word).answered.store(said.value, std::memory_order_release);
      return true;
    }
    case MirrorMessage::ringPlace:
      placeRing(payload);
      return true;
    case MirrorMessage::wordPlace:
      placeWord(payload);
      return true;
    case MirrorMessage::fold:
      segment.header().fold.store(take<Flag>(payload).value, std::memory_order_relaxed);
      return true;
    case MirrorMessage::faultCleared: {
      auto said = take<DeviceCode>(payload);
      require(said.device, maxDevices, "device");
      faults[said.device] = 0;
      segment.header().fault[said.device].store(0);
      return true;
    }
    default:
      return false;
  }
}

void WorkerMirror::placeRing(std::span<const std::byte> payload) {
  auto said = take<RingPlace>(payload);
  require(said.device, maxDevices, "device");
  RingHeader& ring = segment.ring(said.device);
  if (written[said.device] != 0 || said.position == 0 || said.position % frameUnit != 0) refuse("a ring's place", said.position);
  segment.header().fault[said.device].store(said.fault);
  faults[said.device] = said.fault;
  ring.head.store(said.position);
  ring.tail.store(said.position);
  ring.isOpen.store(1);
  written[said.device] = tails[said.device] = said.position;
  flags = {~0u, ~0u};  // forces a report: the program has the flags of another worker
}

// Frames that this side has not seen may have put the word into a graph.
void WorkerMirror::placeWord(std::span<const std::byte> payload) {
  auto said = take<WordPlace>(payload);
  require(said.word, completionWordCount, "completion word");
  CompletionWord& word = segment.completionWord(said.word);
  word.done.store(said.done);
  word.answered.store(said.answered);
  completions[said.word] = {.reported = said.done, .seen = said.done, .later = true};
  watches = true;
}

void WorkerMirror::lend(std::span<const std::byte> payload) {
  auto said = take<SlabBytes>(payload);
  require(said.slab, slabCount, "slab");
  require(payload.size(), slabBytes + 1, "bytes of a slab");
  std::copy(payload.begin(), payload.end(), segment.slab(said.slab));
  // Nonzero, because the GPU or the worker sets it to 0. The client library never sends a generation of 0.
  segment.slabState(said.slab).busy.store(std::max(said.generation, 1u));
  lent[said.slab] = said.generation;
}

void WorkerMirror::applyFrames(std::span<const std::byte> payload) {
  auto said = take<FramesAt>(payload);
  require(said.device, maxDevices, "device");
  if (said.position != written[said.device]) refuse("frames at another position", said.position);
  while (!payload.empty()) {
    auto rest = payload;
    auto start = take<FrameStart>(rest);
    if (start.bytes < frameUnit || start.bytes > maxFrameBytes || start.bytes % frameUnit != 0 || start.bytes > payload.size())
      refuse("a frame has an invalid size", start.bytes);
    if (start.sequence != written[said.device] + 1) refuse("a frame with another position's sequence number", start.sequence);
    if (!api::isMethod(start.method)) refuse("method", start.method);
    require(start.slot, slotCount, "slot");
    if (start.device != said.device) refuse("a frame of another device", start.device);
    applyFrame(said.device, payload.first(start.bytes));
    payload = payload.subspan(start.bytes);
  }
}

// Records what the frame makes outstanding before the worker can see the frame.
void WorkerMirror::applyFrame(unsigned device, std::span<const std::byte> frame) {
  auto rest = frame;
  auto start = take<FrameStart>(rest);
  auto method = static_cast<api::Method>(start.method);
  auto& info = api::infoOf(method);
  const uint64_t end = written[device] + frame.size();
  if (end - segment.ring(device).tail.load(std::memory_order_acquire) > ringBytes) refuse("more bytes of frames than the ring holds", end);
  words.resize(rest.size() / sizeof(capnp::word));
  std::memcpy(words.data(), rest.data(), rest.size());
  auto message = kj::arrayPtr<const capnp::word>(words.data(), words.size());
  api::visitCompletions(method, message, [&](uint64_t word, const api::CompletionField& field) {
    if (word >= completionWordCount) return;  // the worker refuses the frame
    uint64_t now = segment.completionWord(word).done.load();
    auto [state, isNew] = completions.try_emplace(static_cast<uint32_t>(word), WordState{now, now, {}});
    if (field.later) {
      state->second.later = watches = true;
      return;
    }
    if (state->second.awaited.empty()) ++wordsAwaited;
    state->second.awaited.push_back(start.sequence);
    state->second.device = device;
  });
  if (info.route != api::Route::POST) expectSlot(start, message);
  static const std::atomic<bool> never{false};
  auto place = rings[device]->reserve(words.size(), never);
  KJ_REQUIRE(place.has_value() && place->position == written[device] && place->bytes == frame.size(),
             "a ring is written by others too");
  std::copy(rest.begin(), rest.end(), place->body());
  rings[device]->publish(*place, method, start.slot);
  written[device] = end;
}

// A slot last used for another ring may hold a larger number than this frame's; a slot on which nobody waits may hold an old result.
void WorkerMirror::expectSlot(const FrameStart& start, kj::ArrayPtr<const capnp::word> message) {
  Slot& slot = segment.slot(start.slot);
  auto [found, isNew] = slots.try_emplace(start.slot, SlotState{start.device, {}});
  SlotState& state = found->second;
  if (isNew) slot.result = 0;
  if (slotDevice[start.slot] != start.device) {
    state = {start.device, {}};
    slotDevice[start.slot] = start.device;
    slot.done.store(0);
  }
  Awaited frame{start.sequence, api::infoOf(static_cast<api::Method>(start.method)).route == api::Route::CALL};
  api::visitFills(static_cast<api::Method>(start.method), message, [&](api::Place place, uint64_t bytes) {
    bool isSlab = place.type() == api::PlaceType::SLAB;
    if (bytes > (isSlab ? slabBytes : replyBytes) || (isSlab && place.value() >= slabCount) ||
        (!isSlab && start.slot >= replyCount))
      return;  // the worker refuses the frame
    frame.filledBytes = static_cast<uint32_t>(bytes);
    frame.fillsReply = !isSlab;
    if (isSlab) frame.filledSlab = static_cast<uint32_t>(place.value());
  });
  state.frames.push_back(frame);
}

bool WorkerMirror::isExpecting() const {
  if (!slots.empty() || wordsAwaited != 0 || !lent.empty()) return true;
  for (unsigned device = 0; device < maxDevices; ++device)
    if (tails[device] != written[device]) return true;
  return false;
}

// Tails are read first and reported last, so that everything that a program infers from a tail has been reported before it. Faults are read
// before completions: completions of an ended context that are missing then never come. Flags and errors are read after completions and
// reported before them, because a program reads them when its wait ends. Likewise completion words are read after slots and reported before
// them: when a call that waits for the GPU has returned, an event recorded before it is done.
bool WorkerMirror::send() {
  Seen seen;
  for (unsigned device = 0; device < maxDevices; ++device) {
    seen.tails[device] = segment.ring(device).tail.load(std::memory_order_acquire);
    seen.faults[device] = segment.header().fault[device].load();
  }
  for (auto& [index, state] : slots) state.seen = segment.slot(index).done.load(std::memory_order_acquire);
  readWords();
  bool any = sendState();
  any |= sendWords(seen);
  any |= sendSlots(seen);
  any |= sendSlabs();
  any |= sendTails(seen);
  return any;
}

// A stream's word can depend on another stream's word, which an earlier read has missed. So the words are read until none has changed since
// the last round: then all values are of one moment. The limit is for kernels that write words themselves without end.
void WorkerMirror::readWords() {
  constexpr int mostTimes = 1000;
  bool changes = true;
  for (int times = 0; changes && times < mostTimes; ++times) {
    changes = false;
    for (auto& [index, state] : completions) {
      if (!state.later && state.awaited.empty()) continue;
      const uint64_t now = segment.completionWord(index).done.load(std::memory_order_acquire);
      changes |= now != state.seen;
      state.seen = now;
    }
  }
}

bool WorkerMirror::sendState() {
  SegmentHeader& header = segment.header();
  bool any = false;
  Flags now{header.storesImages.load(), header.outputWaits.load(std::memory_order_acquire)};
  if (now.storesImages != flags.storesImages || now.outputWaits != flags.outputWaits) {
    flags = now;
    mirror::send(link, MirrorMessage::flags, flags);
    any = true;
  }
  for (uint32_t device = 0; device < maxDevices; ++device) {
    int32_t fault = header.fault[device].load();
    if (fault != faults[device]) {
      faults[device] = fault;
      mirror::send(link, MirrorMessage::fault, DeviceCode{device, fault});
      any = true;
    }
    if (header.deferred[device].load(std::memory_order_relaxed) == 0) continue;
    mirror::send(link, MirrorMessage::deferred, DeviceCode{device, header.deferred[device].exchange(0)});
    any = true;
  }
  if (uint64_t now = header.handover.load(); now != handover) {
    handover = now;
    if (now % 2 == 1) mirror::send(link, MirrorMessage::handover, WordValue{0, 0, now});
    any = true;
  }
  return any;
}

// Whether the frame was executed in a context that has ended, so that the GPU writes nothing more for it.
bool WorkerMirror::isLost(const Seen& seen, unsigned device, uint64_t sequence) const {
  return seen.faults[device] != 0 && sequence <= seen.tails[device];
}

bool WorkerMirror::sendSlots(const Seen& seen) {
  bool any = false;
  for (auto entry = slots.begin(); entry != slots.end();) {
    auto& [index, state] = *entry;
    while (!state.frames.empty() && !link.isFull()) {
      const Awaited& frame = state.frames.front();
      if (frame.sequence <= state.seen) {
        reportSlot(index, frame);
        any = true;
      } else if (frame.isCall || !isLost(seen, state.device, frame.sequence)) {
        break;
      }
      state.frames.pop_front();
    }
    entry = state.frames.empty() ? slots.erase(entry) : std::next(entry);
  }
  return any;
}

void WorkerMirror::reportSlot(uint16_t index, const Awaited& frame) {
  const Slot& slot = segment.slot(index);
  if (frame.filledSlab)
    mirror::sendSlab(link, MirrorMessage::slabFilled, SlabBytes{*frame.filledSlab, 0},
                     {segment.slab(*frame.filledSlab), frame.filledBytes});
  SlotDone done{frame.sequence, slot.result, 0, index, frame.isCall};
  uint64_t bytes = frame.fillsReply ? frame.filledBytes : 0;
  if (frame.isCall && index < replyCount) {
    done.replyWords = slot.replyWords;
    bytes = std::min<uint64_t>(done.replyWords * sizeof(capnp::word), replyBytes);
  }
  std::span<const std::byte> reply;
  if (bytes != 0) reply = {segment.reply(index), bytes};
  mirror::send(link, MirrorMessage::slot, done, reply);
}

// The program sees the words change one after the other. A word's number is larger than the numbers that it depends on, so they are
// reported in ascending order, including numbers that a word has already passed.
bool WorkerMirror::sendWords(const Seen& seen) {
  due.clear();
  for (auto& [index, state] : completions) {
    const bool wasAwaited = !state.awaited.empty();
    for (; !state.awaited.empty() && state.awaited.front() <= state.seen; state.awaited.pop_front())
      if (state.awaited.front() > state.reported) due.emplace_back(state.reported = state.awaited.front(), index);
    if (state.seen != state.reported) due.emplace_back(state.reported = state.seen, index);
    if (!state.awaited.empty() && isLost(seen, state.device, state.awaited.back())) state.awaited.clear();
    if (wasAwaited && state.awaited.empty()) --wordsAwaited;
  }
  std::ranges::sort(due);
  for (auto& [number, index] : due) mirror::send(link, MirrorMessage::word, WordValue{index, 0, number});
  return !due.empty();
}

bool WorkerMirror::sendSlabs() {
  bool any = false;
  for (auto entry = lent.begin(); entry != lent.end();) {
    auto [slab, generation] = *entry;
    if (segment.slabState(slab).busy.load(std::memory_order_acquire) != 0) {
      ++entry;
      continue;
    }
    mirror::send(link, MirrorMessage::slabFree, SlabBytes{slab, generation});
    entry = lent.erase(entry);
    any = true;
  }
  return any;
}

bool WorkerMirror::sendTails(const Seen& seen) {
  bool any = false;
  if (link.isFull()) return false;  // completions that must be reported before it may be waiting
  for (uint32_t device = 0; device < maxDevices; ++device) {
    if (seen.tails[device] == tails[device]) continue;
    tails[device] = seen.tails[device];
    mirror::send(link, MirrorMessage::tail, FramesAt{tails[device], device});
    any = true;
  }
  return any;
}

}  // namespace vgpu
