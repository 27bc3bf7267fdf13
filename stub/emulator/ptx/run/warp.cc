// A warp's frames: registers, calls, the slice.
#include "stub/emulator/ptx/run/warp.h"

#include <cstring>

#include "stub/emulator/ptx/run/block.h"

namespace vgpu::emulator {
namespace {

constexpr int64_t kSlice = 50000;                         // instructions before another warp or split gets its turn
constexpr size_t kMostRegisterBytes = size_t{256} << 20;  // of one warp: recursion without local memory ends here
constexpr uint32_t kCallBytes = 16;  // what a call takes of the stack beside the callee's variables

uint64_t roundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace

void Warp::reset(Block& block, uint32_t index) {
  block_ = &block;
  index_ = index;
  spans_ = {};
  const uint32_t threads = std::min<uint32_t>(kLanes, block.threads() - index * kLanes);
  live_ = threads == kLanes ? ~0u : (1u << threads) - 1;
  executed_ = 0;
  splits_.fill({});
  joins_.fill({});
  activations_.clear();
  freeActivations_.clear();

  const Function& entry = *block.kernel().entry;
  growRegisters(entry.frameBytes);
  // The outermost frame's constants stay from block to block of a launch.
  if (launchSerial_ != block.grid().serial) {
    if (!entry.constantLanes.empty())
      std::memcpy(registerBase_, entry.constantLanes.data(), entry.constantLanes.size());
    launchSerial_ = block.grid().serial;
  }
  growLocal(entry.localBytes);
  const int activation = newActivation();
  activations_[activation] = {&entry, nullptr, 0, 0, entry.localBytes, -1, 0};
  newSplit(entry.code.data(), live_, -1, activation);
  current_ = -1;
  activation_ = activation;
}

bool Warp::ready() const {
  for (const Split& split : splits_)
    if (split.state == SplitState::ready) return true;
  return false;
}

void Warp::run() {
  budget = kSlice;
  const Inst* inst = pickNext();
  while (inst) inst = inst->run[mode](*this, inst);
}

const Inst* Warp::sliceEnded(const Inst* following) {
  executed_ += static_cast<uint64_t>(kSlice - budget);
  budget = kSlice;
  const Launch& launch = block_->launch();
  if (launch.maxInstructions && executed_ > launch.maxInstructions)
    return fault(Fault::Kind::timeout, following, firstActive(),
                 "the kernel did not end: a warp executed more than " + std::to_string(launch.maxInstructions) +
                     " instructions");
  if (launch.cancelled && launch.cancelled->load(std::memory_order_relaxed)) block_->grid().stopped = true;
  save(following);
  current_ = -1;
  // Who spins may wait for lanes that wait for it at a join.
  if (mode == 1) {
    int readyCount = 0;
    for (const Split& split : splits_) readyCount += split.state == SplitState::ready;
    if (readyCount == 1) releaseJoined();
  }
  return nullptr;
}

void Warp::growRegisters(size_t bytes) {
  const size_t have = registers_.empty() ? 0 : registers_.size() - 64;
  if (bytes <= have) return;
  std::vector<std::byte> larger(std::max(bytes, have * 2) + 64);
  void* aligned = larger.data();
  size_t room = larger.size();
  std::align(64, larger.size() - 64, aligned, room);
  auto* base = static_cast<std::byte*>(aligned);
  if (have) std::memcpy(base, registerBase_, have);
  registers_.swap(larger);
  registerBase_ = base;
  if (current_ >= 0) frame = registerBase_ + activations_[activation_].frame;
}

bool Warp::growLocal(uint64_t bytes) {
  if (bytes <= localStride_) return true;
  const uint64_t limit = std::max<uint64_t>(block_->launch().stackBytes, block_->kernel().entry->localBytes);
  if (bytes > limit) return false;
  const auto stride =
      static_cast<uint32_t>(std::min<uint64_t>(limit, roundUp(std::max<uint64_t>(bytes, localStride_ * 2), 16)));
  std::vector<std::byte> larger(size_t{stride} * kLanes);
  for (int lane = 0; lane < kLanes && localStride_; ++lane)
    std::memcpy(larger.data() + size_t{stride} * lane, local(lane), localStride_);
  localMemory_.swap(larger);
  localStride_ = stride;
  return true;
}

namespace {

// Copies lanes of `bytes` in all, of 4-byte words, for the lanes in `mask` alone.
void copyLanes(std::byte* to, const std::byte* from, uint32_t bytes, bool whole,
               const std::array<uint32_t, kLanes>& mask) {
  if (whole) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (uint32_t at = 0; at < bytes; at += kLanes * 4)
    for (int lane = 0; lane < kLanes; ++lane)
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
  std::byte* base = registerBase_ + frameOffset;
  if (mode == 0) {
    if (!function.constantLanes.empty())
      std::memcpy(base, function.constantLanes.data(), function.constantLanes.size());
    return;
  }
  for (const FrameConstant& constant : function.constants)
    for (int lane = 0; lane < kLanes; ++lane)
      if (laneMask[lane]) {
        std::byte* cell = base + constant.offset + lane * constant.bytes;
        std::memcpy(cell, &constant.lo, std::min(constant.bytes, 8u));
        if (constant.bytes == 16) std::memcpy(cell + 8, &constant.hi, 8);
      }
}

const Inst* Warp::call(const Inst* inst, const CallSite& site, const Function& callee) {
  if (!callee.refusal.empty())
    return fault(Fault::Kind::notSupported, inst, firstActive(), "a call to '" + callee.name + "': " + callee.refusal);
  if (!sameShape(site.arguments, callee.parameters) || !sameShape(site.results, callee.results))
    return fault(Fault::Kind::invalidPc, inst, firstActive(),
                 "'" + callee.name + "' is called with arguments of another shape");
  const Activation caller = activation();
  const uint32_t frameOffset = caller.frame + caller.function->frameBytes;
  const uint64_t localBase = roundUp(caller.localTop, 16), localTop = localBase + callee.localBytes + kCallBytes;
  if (localTop > std::max(block_->launch().stackBytes, block_->kernel().entry->localBytes + 1024) ||
      frameOffset + size_t{callee.frameBytes} > kMostRegisterBytes || (callee.localBytes && !growLocal(localTop)))
    return fault(Fault::Kind::stackOverflow, inst, firstActive(),
                 "stack overflow: '" + callee.name + "' needs " + std::to_string(localTop) +
                     " bytes of stack, the limit is " + std::to_string(block_->launch().stackBytes));
  growRegisters(frameOffset + size_t{callee.frameBytes});
  frame = registerBase_ + caller.frame;
  enterFrame(callee, frameOffset);
  std::byte* const calleeFrame = registerBase_ + frameOffset;
  for (size_t i = 0; i < site.arguments.size(); ++i)
    copyLanes(calleeFrame + callee.parameters[i].offset, frame + site.arguments[i].offset, site.arguments[i].bytes,
              mode == 0, laneMask);

  const int entered = newActivation();
  activations_[entered] = {
      &callee, inst, frameOffset, static_cast<uint32_t>(localBase), static_cast<uint32_t>(localTop), activation_, 1};
  splits_[current_].activation = activation_ = entered;
  frame = calleeFrame;
  return callee.code.data();
}

const Inst* Warp::returnFromCall() {
  const Activation callee = activation();
  const Activation caller = activations_[callee.parent];
  const CallSite& site = *static_cast<const CallSite*>(callee.back->aux);
  std::byte* const callerFrame = registerBase_ + caller.frame;
  for (size_t i = 0; i < site.results.size(); ++i)
    copyLanes(callerFrame + site.results[i].offset, frame + callee.function->results[i].offset, site.results[i].bytes,
              mode == 0, laneMask);
  const int32_t ended = activation_;
  retain(callee.parent);
  splits_[current_].activation = activation_ = callee.parent;
  release(ended);
  frame = callerFrame;
  return callee.back + 1;
}

int Warp::newActivation() {
  if (!freeActivations_.empty()) {
    const int index = freeActivations_.back();
    freeActivations_.pop_back();
    return index;
  }
  activations_.emplace_back();
  return static_cast<int>(activations_.size()) - 1;
}

void Warp::release(int32_t index) {
  while (index >= 0 && --activations_[index].references == 0) {
    freeActivations_.push_back(index);
    index = activations_[index].parent;
  }
}

std::array<uint32_t, 3> Warp::threadAt(uint32_t linear) const {
  const auto& size = block_->launch().block;
  return {linear % size[0], linear / size[0] % size[1], linear / size[0] / size[1]};
}

}  // namespace vgpu::emulator
