#include "vgpu/wire/program-mirror.h"

#include <kj/debug.h>

#include <algorithm>

#include "vgpu/api/mirrored.h"
#include "vgpu/wire/futex.h"

namespace vgpu {

using namespace mirror;

namespace {

constexpr size_t batchBytes = 128 * KiB;  // of frames per message

// Copies a frame's message into `words`, which is aligned to words.
kj::ArrayPtr<const capnp::word> messageOf(std::span<const std::byte> frame, std::vector<capnp::word>& words) {
  auto body = frame.subspan(sizeof(FrameStart));
  words.resize(body.size() / sizeof(capnp::word));
  std::memcpy(words.data(), body.data(), words.size() * sizeof(capnp::word));
  return kj::arrayPtr(words.data(), words.size());
}

FrameStart startOf(std::span<const std::byte> frame) { return take<FrameStart>(frame); }

const api::MethodInfo& infoOf(std::span<const std::byte> frame) {
  auto start = startOf(frame);
  if (!api::isMethod(start.method)) refuse("method", start.method);
  return api::infoOf(static_cast<api::Method>(start.method));
}

}  // namespace

namespace mirror {

void refuse(const char* what, uint64_t value) {
  KJ_FAIL_REQUIRE("the peer of this session sent invalid data", what, value);
}

}  // namespace mirror

ProgramMirror::ProgramMirror(const Segment& segment, Link& link) : segment(segment), link(link) {
  for (unsigned device = 0; device < maxDevices; ++device) taps[device] = std::make_unique<RingTap>(segment, device);
}

// It is not known which words the program answers, because the frames that named them went to another worker: it may be any word.
void ProgramMirror::introduce() {
  for (uint32_t device = 0; device < maxDevices; ++device) {
    faults[device] = segment.header().fault[device].load();
    if (uint64_t position = taps[device]->position(); position != 0)
      mirror::send(link, MirrorMessage::ringPlace, RingPlace{position, device, faults[device]});
  }
  for (uint32_t index = 0; index < completionWordCount; ++index) {
    CompletionWord& word = segment.completionWord(index);
    const uint64_t done = word.done.load(std::memory_order_acquire), answered = word.answered.load(std::memory_order_acquire);
    if (done == 0 && answered == 0) continue;
    answers[index] = {done, answered};
    mirror::send(link, MirrorMessage::wordPlace, WordPlace{index, 0, done, answered});
  }
}

bool ProgramMirror::send() {
  bool any = sendSettings();
  any |= sendAnswers();
  for (unsigned device = 0; device < maxDevices; ++device)
    if (taps[device]->hasMore()) any |= sendFrames(*taps[device], device);
  return any;
}

bool ProgramMirror::isDrained() const {
  return std::none_of(taps.begin(), taps.end(), [](auto& tap) { return tap->hasMore(); });
}

// Sends frames in batches. A slab's bytes must be sent before the frame that reads them, so such a frame begins a batch.
bool ProgramMirror::sendFrames(RingTap& tap, unsigned device) {
  auto next = [&] { return link.isFull() ? std::nullopt : tap.next(); };
  auto frame = next();
  const bool any = frame.has_value();
  while (frame) {
    const FramesAt head{tap.position() - frame->size(), device};
    sendSlabsOf(*frame);
    auto room = link.begin(static_cast<uint16_t>(MirrorMessage::frames), sizeof head + batchBytes + maxFrameBytes);
    std::memcpy(room.data(), &head, sizeof head);
    size_t filled = sizeof head;
    do {
      noteAnswered(*frame);
      std::copy(frame->begin(), frame->end(), room.begin() + static_cast<ptrdiff_t>(filled));
      filled += frame->size();
      frame = next();
    } while (frame && filled < batchBytes && infoOf(*frame).slabs.empty());
    link.finish(filled);
  }
  return any;
}

void ProgramMirror::sendSlabsOf(std::span<const std::byte> frame) {
  auto method = static_cast<api::Method>(startOf(frame).method);
  if (infoOf(frame).slabs.empty()) return;
  api::visitSlabs(method, messageOf(frame, words), [&](uint64_t slab, uint64_t bytes) {
    if (slab >= slabCount || bytes == 0 || bytes > slabBytes) return;  // the worker will refuse the frame
    const SlabBytes head{static_cast<uint32_t>(slab), segment.slabState(slab).busy.load(std::memory_order_relaxed)};
    mirror::sendSlab(link, MirrorMessage::slabLent, head, {segment.slab(slab), bytes});
  });
}

// Notes words whose `answered` the program will write and the GPU waits for.
void ProgramMirror::noteAnswered(std::span<const std::byte> frame) {
  auto& completions = api::mirroredOf(static_cast<api::Method>(startOf(frame).method)).completions;
  if (std::ranges::none_of(completions, [](auto& field) { return field.answered; })) return;
  api::visitCompletions(static_cast<api::Method>(startOf(frame).method), messageOf(frame, words),
                        [&](uint64_t word, auto& field) {
                          if (field.answered && word < completionWordCount) answers.try_emplace(static_cast<uint32_t>(word));
                        });
}

bool ProgramMirror::sendSettings() {
  bool any = false;
  if (uint32_t fold = segment.header().fold.load(std::memory_order_relaxed); fold != foldSent) {
    foldSent = fold;
    mirror::send(link, MirrorMessage::fold, Flag{fold});
    any = true;
  }
  for (uint32_t device = 0; device < maxDevices; ++device) {
    if (faults[device] == 0 || segment.header().fault[device].load() != 0) continue;
    faults[device] = 0;
    mirror::send(link, MirrorMessage::faultCleared, DeviceCode{device, 0});
    any = true;
  }
  return any;
}

bool ProgramMirror::sendAnswers() {
  bool any = false;
  for (auto& [word, answer] : answers) {
    if (answer.sent >= answer.asked) continue;
    uint64_t given = segment.completionWord(word).answered.load(std::memory_order_acquire);
    if (given == answer.sent) continue;
    answer.sent = given;
    mirror::send(link, MirrorMessage::answered, WordValue{word, 0, given});
    any = true;
  }
  return any;
}

bool ProgramMirror::apply(const LinkMessage& message) {
  auto type = static_cast<MirrorMessage>(message.type);
  switch (type) {
    case MirrorMessage::slot:
      applySlot(message.payload);
      return true;
    case MirrorMessage::word:
      applyWord(message.payload);
      return true;
    case MirrorMessage::slabFree:
    case MirrorMessage::slabFilled:
      applySlab(type, message.payload);
      return true;
    case MirrorMessage::tail:
    case MirrorMessage::flags:
    case MirrorMessage::fault:
    case MirrorMessage::deferred:
    case MirrorMessage::handover:
      applyState(type, message.payload);
      return true;
    default:
      return false;
  }
}

// Completes a frame as the worker does: result and reply are written before `done`, and a sleeping thread is woken.
void ProgramMirror::applySlot(std::span<const std::byte> payload) {
  auto said = take<SlotDone>(payload);
  require(said.slot, slotCount, "slot");
  require(payload.size(), said.slot < replyCount ? replyBytes + 1 : 1, "bytes of a reply");
  require(said.replyWords, maxReplyBytes / sizeof(capnp::word) + 1, "words of a reply");
  Slot& slot = segment.slot(said.slot);
  if (!payload.empty()) std::copy(payload.begin(), payload.end(), segment.reply(said.slot));
  if (said.isCall != 0) slot.replyWords = said.replyWords;
  if (said.isCall != 0 || said.result != 0) slot.result = said.result;
  slot.done.store(said.done);  // seq_cst: must not be reordered after the load of `sleeping`
  if (slot.sleeping.load() == 0) return;
  slot.wakeups.fetch_add(1);
  futexWake(slot.wakeups);
}

void ProgramMirror::applyWord(std::span<const std::byte> payload) {
  auto said = take<WordValue>(payload);
  require(said.word, completionWordCount, "completion word");
  if (auto answer = answers.find(said.word); answer != answers.end()) answer->second.asked = said.value;
  segment.completionWord(said.word).done.store(said.value, std::memory_order_release);
}

void ProgramMirror::applySlab(MirrorMessage type, std::span<const std::byte> payload) {
  auto said = take<SlabBytes>(payload);
  require(said.slab, slabCount, "slab");
  if (type == MirrorMessage::slabFree) {
    // After a fault, the program may have taken the slab back and given it a new generation.
    segment.slabState(said.slab).busy.compare_exchange_strong(said.generation, 0, std::memory_order_release);
    return;
  }
  require(payload.size(), slabBytes + 1, "bytes of a slab");
  std::copy(payload.begin(), payload.end(), segment.slab(said.slab));
}

void ProgramMirror::applyState(MirrorMessage type, std::span<const std::byte> payload) {
  SegmentHeader& header = segment.header();
  if (type == MirrorMessage::tail) {
    auto said = take<FramesAt>(payload);
    require(said.device, maxDevices, "device");
    taps[said.device]->release(said.position);
  } else if (type == MirrorMessage::flags) {
    auto said = take<Flags>(payload);
    header.storesImages.store(said.storesImages);
    header.outputWaits.store(said.outputWaits, std::memory_order_release);
  } else if (type == MirrorMessage::handover) {
    uint64_t accepted = take<WordValue>(payload).value - 1;
    header.handover.compare_exchange_strong(accepted, accepted + 1);
  } else {
    auto said = take<DeviceCode>(payload);
    require(said.device, maxDevices, "device");
    int32_t none = 0;
    if (type == MirrorMessage::deferred) {
      header.deferred[said.device].compare_exchange_strong(none, said.code);  // only the first error is kept
    } else {
      faults[said.device] = said.code;
      header.fault[said.device].store(said.code);
    }
  }
}

bool ProgramMirror::prepareToSleep() {
  bool isIdle = true;
  for (auto& tap : taps) isIdle &= tap->prepareToSleep();
  return isIdle;
}

void ProgramMirror::awake() {
  for (auto& tap : taps) tap->awake();
}

std::vector<std::atomic<uint32_t>*> ProgramMirror::bells() const {
  std::vector<std::atomic<uint32_t>*> all;
  for (auto& tap : taps) all.push_back(&tap->bell());
  return all;
}

}  // namespace vgpu
