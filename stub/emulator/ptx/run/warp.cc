// A warp's frames: registers, calls, the time slice.
#include "stub/emulator/ptx/run/warp.h"

#include <cstring>

#include "stub/emulator/ptx/run/block.h"

namespace vgpu::emulator {
namespace {

constexpr int64_t sliceLength = 50000;                   // number of instructions before another warp or split gets its turn
constexpr size_t mostRegisterBytes = size_t{256} << 20;  // for one warp: limits recursion without local memory
constexpr uint32_t callBytes = 16;                       // stack bytes of a call besides the callee's variables

uint64_t roundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace

void Warp::reset(Block& block, uint32_t index) {
  owner = &block;
  number = index;
  spans = {};
  const uint32_t threads = std::min<uint32_t>(laneCount, block.threads() - index * laneCount);
  living = threads == laneCount ? ~0u : (1u << threads) - 1;
  executed = 0;
  arrivedAtCluster = 0;
  polled = nullptr;
  arrivedApart.fill(0);
  splits.fill({});
  splitCount = 0;
  joins.fill({});
  activations.clear();
  freeActivations.clear();

  const Function& entry = *block.kernel().entry;
  growRegisters(entry.frameBytes);
  // The outermost frame's constants are kept from block to block of a launch.
  if (launchSerial != block.grid().serial) {
    if (!entry.constantLanes.empty()) std::memcpy(registerBase, entry.constantLanes.data(), entry.constantLanes.size());
    launchSerial = block.grid().serial;
  }
  growLocal(entry.localBytes);
  const int activation = newActivation();
  activations[activation] = {&entry, nullptr, 0, 0, entry.localBytes, -1, 0};
  newSplit(entry.code.data(), living, -1, activation);
  current = -1;
  currentActivation = activation;
}

bool Warp::ready() {
  if (const Split* only = alone()) return only->state == SplitState::ready;
  for (const Split& split : splits)
    if (split.state == SplitState::ready) return true;
  return false;
}

void Warp::run() {
  budget = sliceLength;
  const Inst* inst = pickNext();
  while (inst) inst = inst->run[mode](*this, inst);
}

const Inst* Warp::sliceEnded(const Inst* following) {
  executed += static_cast<uint64_t>(sliceLength - budget);
  budget = sliceLength;
  const Launch& launch = owner->launch();
  if (launch.maxInstructions && executed > launch.maxInstructions)
    return fault(Fault::Kind::timeout, following, firstActive(),
                 "the kernel did not end: a warp executed more than " + std::to_string(launch.maxInstructions) +
                     " instructions");
  if (launch.cancelled && launch.cancelled->load(std::memory_order_relaxed)) owner->grid().stopped = true;
  save(following);
  current = -1;
  // A spinning split may wait for lanes that wait for it at a join.
  if (mode == 1) {
    int readyCount = 0;
    for (const Split& split : splits) readyCount += split.state == SplitState::ready;
    if (readyCount == 1) releaseJoined();
  }
  return nullptr;
}

void Warp::growRegisters(size_t bytes) {
  const size_t have = registers.empty() ? 0 : registers.size() - 64;
  if (bytes <= have) return;
  std::vector<std::byte> larger(std::max(bytes, have * 2) + 64);
  void* aligned = larger.data();
  size_t room = larger.size();
  std::align(64, larger.size() - 64, aligned, room);
  auto* base = static_cast<std::byte*>(aligned);
  if (have) std::memcpy(base, registerBase, have);
  registers.swap(larger);
  registerBase = base;
  if (current >= 0) frame = registerBase + activations[currentActivation].frame;
}

bool Warp::growLocal(uint64_t bytes) {
  if (bytes <= localStride) return true;
  const uint64_t limit = std::max<uint64_t>(owner->launch().stackBytes, owner->kernel().entry->localBytes);
  if (bytes > limit) return false;
  const auto stride =
      static_cast<uint32_t>(std::min<uint64_t>(limit, roundUp(std::max<uint64_t>(bytes, localStride * 2), 16)));
  std::vector<std::byte> larger(size_t{stride} * laneCount);
  for (int lane = 0; lane < laneCount && localStride; ++lane)
    std::memcpy(larger.data() + size_t{stride} * lane, local(lane), localStride);
  localMemory.swap(larger);
  localStride = stride;
  return true;
}

namespace {

// Copies lanes of 4-byte words, `bytes` in all, only for the lanes in `mask`.
void copyLanes(std::byte* to, const std::byte* from, uint32_t bytes, bool whole,
               const std::array<uint32_t, laneCount>& mask) {
  if (whole) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (uint32_t at = 0; at < bytes; at += laneCount * 4)
    for (int lane = 0; lane < laneCount; ++lane)
      if (mask[lane]) std::memcpy(to + at + lane * 4, from + at + lane * 4, 4);
}

bool sameShape(const std::vector<Slot>& a, const std::vector<Slot>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].bytes != b[i].bytes) return false;
  return true;
}

}  // namespace

void Warp::enterFrame(const Function& function, uint32_t frameOffset) {
  std::byte* base = registerBase + frameOffset;
  if (mode == 0) {
    if (!function.constantLanes.empty())
      std::memcpy(base, function.constantLanes.data(), function.constantLanes.size());
    return;
  }
  for (const FrameConstant& constant : function.constants)
    for (int lane = 0; lane < laneCount; ++lane)
      if (laneMask[lane]) {
        std::byte* cell = base + constant.offset + lane * constant.bytes;
        std::memcpy(cell, &constant.lo, std::min(constant.bytes, 8u));
        if (constant.bytes == 16) std::memcpy(cell + 8, &constant.hi, 8);
      }
}

// Frames of splits in other functions use the same register file, so the end is the maximum over all activations.
uint32_t Warp::endOfFrames() const {
  const auto endOf = [](const Activation& each) { return each.frame + each.function->frameBytes; };
  uint32_t end = endOf(activations[currentActivation]);
  if (mode == 0) return end;
  for (const Activation& each : activations)
    if (each.references > 0) end = std::max(end, endOf(each));
  return end;
}

const Inst* Warp::call(const Inst* inst, const CallSite& site, const Function& callee) {
  if (!callee.refusal.empty())
    return fault(Fault::Kind::notSupported, inst, firstActive(), "a call to '" + callee.name + "': " + callee.refusal);
  if (!sameShape(site.arguments, callee.parameters) || !sameShape(site.results, callee.results))
    return fault(Fault::Kind::invalidPc, inst, firstActive(),
                 "'" + callee.name + "' is called with arguments of the wrong types");
  const Activation caller = activation();
  const uint32_t frameOffset = endOfFrames();
  const uint64_t localBase = roundUp(caller.localTop, 16), localTop = localBase + callee.localBytes + callBytes;
  if (localTop > std::max(owner->launch().stackBytes, owner->kernel().entry->localBytes + 1024) ||
      frameOffset + size_t{callee.frameBytes} > mostRegisterBytes || (callee.localBytes && !growLocal(localTop)))
    return fault(Fault::Kind::stackOverflow, inst, firstActive(),
                 "stack overflow: '" + callee.name + "' needs " + std::to_string(localTop) +
                     " bytes of stack, the limit is " + std::to_string(owner->launch().stackBytes));
  growRegisters(frameOffset + size_t{callee.frameBytes});
  frame = registerBase + caller.frame;
  enterFrame(callee, frameOffset);
  std::byte* const calleeFrame = registerBase + frameOffset;
  for (size_t i = 0; i < site.arguments.size(); ++i)
    copyLanes(calleeFrame + callee.parameters[i].offset, frame + site.arguments[i].offset, site.arguments[i].bytes,
              mode == 0, laneMask);

  const int entered = newActivation();
  activations[entered] = {
      &callee,           inst, frameOffset, static_cast<uint32_t>(localBase), static_cast<uint32_t>(localTop),
      currentActivation, 1};
  splits[current].activation = currentActivation = entered;
  frame = calleeFrame;
  return callee.code.data();
}

const Inst* Warp::returnFromCall() {
  const Activation callee = activation();
  const Activation caller = activations[callee.parent];
  const CallSite& site = *static_cast<const CallSite*>(callee.back->aux);
  std::byte* const callerFrame = registerBase + caller.frame;
  for (size_t i = 0; i < site.results.size(); ++i)
    copyLanes(callerFrame + site.results[i].offset, frame + callee.function->results[i].offset, site.results[i].bytes,
              mode == 0, laneMask);
  const int32_t ended = currentActivation;
  retain(callee.parent);
  splits[current].activation = currentActivation = callee.parent;
  release(ended);
  frame = callerFrame;
  return callee.back + 1;
}

int Warp::newActivation() {
  if (!freeActivations.empty()) {
    const int index = freeActivations.back();
    freeActivations.pop_back();
    return index;
  }
  activations.emplace_back();
  return static_cast<int>(activations.size()) - 1;
}

void Warp::release(int32_t index) {
  while (index >= 0 && --activations[index].references == 0) {
    freeActivations.push_back(index);
    index = activations[index].parent;
  }
}

std::array<uint32_t, 3> Warp::threadAt(uint32_t linear) const {
  const auto& size = owner->launch().block;
  return {linear % size[0], linear / size[0] % size[1], linear / size[0] / size[1]};
}

}  // namespace vgpu::emulator
