// A warp: 32 threads, their registers and program counters.
//
// Threads that run together form a split. If the lanes of a branch disagree, it makes two splits and a join: the immediate post-dominator
// of the branch, where they wait for each other and are merged again. That wait is not guaranteed: if the others spin or block, the waiting
// ones continue (independent thread scheduling).
//
// Owned by its block and used by one host thread at a time.
#pragma once

#include <array>
#include <vector>

#include "stub/emulator/ptx/lanes/frame.h"
#include "stub/emulator/ptx/run/interpreter.h"
#include "stub/emulator/ptx/run/program.h"
#include "stub/emulator/ptx/run/shared-check.h"
#include "stub/emulator/ptx/run/windows.h"

namespace vgpu::emulator {

class Block;

// One call of a function by the threads of one split; further splits of that call share it.
struct Activation {
  const Function* function = nullptr;
  const Inst* back = nullptr;  // the call instruction
  uint32_t frame = 0;          // byte offset in the register file
  uint32_t localBase = 0, localTop = 0;
  int32_t parent = -1;
  int32_t references = 0;
};

enum class SplitState : uint8_t { unused, ready, atWarpSync, atBarrier };

struct WarpSync;

struct Split {
  SplitState state = SplitState::unused;
  const Inst* pc = nullptr;
  uint32_t mask = 0;
  int32_t join = -1;
  int32_t activation = -1;
  uint64_t syncKey = 0;  // for atWarpSync: the instruction's kind and its member mask
  uint32_t syncMask = 0;
  const WarpSync* sync = nullptr;
  int barrier = 0;  // for atBarrier
};

struct Join {
  const Inst* at = nullptr;  // nullptr: unused
  uint32_t expected = 0, arrived = 0;
  int32_t parent = -1;
  int32_t activation = -1;
};

// A collective among lanes that may be at different instructions: all leave a value, then all take their results.
struct WarpSync {
  void (*leave)(Warp&, const Inst*);
  void (*take)(Warp&, const Inst*, uint32_t members);
};

class Warp : public LaneFrame {
 public:
  // ---- state that handlers use at every instruction
  uint32_t mode = 0;    // index into Inst::run: 1 if some living lane is inactive
  uint32_t active = 0;  // lanes that execute now
  int64_t budget = 0;   // instructions left in this slice
  const std::byte* polled = nullptr;  // the address of the last volatile or ordered load
  std::array<uint32_t, 16> arrivedApart{};  // at each barrier of the block: lanes that have arrived separately from the rest of the warp
  uint32_t arrivedAtCluster = 0;  // lanes that have arrived in this phase of the cluster's barrier
  alignas(64) std::array<uint32_t, laneCount> laneMask{};  // `active`, one word for each lane: valid in mode 1

  void reset(Block& block, uint32_t index);
  // Runs until every split waits or ends, or until the slice is used up.
  void run();
  bool finished() const { return living == 0; }
  bool ready();

  // ---- control flow
  const Inst* diverge(const Inst* branch, const Inst* taken, uint32_t takenMask);
  const Inst* divergeMany(const Inst* join, const Inst* const* targets, const uint32_t* masks, int count);
  const Inst* arrive(const Inst* joinInst);
  const Inst* exitLanes(uint32_t mask, const Inst* following);
  const Inst* sliceEnded(const Inst* following);
  const Inst* call(const Inst*, const CallSite&, const Function&);
  const Inst* returnFromCall();
  void setActive(uint32_t mask);  // for one instruction: see restoreActive()
  void restoreActive();

  // ---- waiting
  const Inst* warpSync(const Inst*, const WarpSync&, uint32_t kind, uint32_t members);
  const Inst* waitAtBarrier(const Inst* following, int barrier);
  void releaseBarrier(int barrier);
  uint32_t live() const { return living; }

  // ---- memory
  struct Span {
    uint64_t base = 0, bytes = 0;
    std::byte* host = nullptr;
    bool writable = false;
  };
  // The region that contains [address, address + bytes), in any window except local; nullptr if there is none.
  const Span* findSpan(uint64_t address, uint64_t bytes, bool write);
  // The place of a generic address for `lane`; nullptr, after a fault, if the access is not allowed.
  std::byte* locate(const Inst*, int lane, uint64_t address, uint32_t bytes, uint32_t align, bool write);
  // Like locate(), with the launch's checks of shared memory: for instructions that do not use resolve().
  std::byte* access(const Inst*, int lane, uint64_t address, uint32_t bytes, uint32_t align, Access);
  // Reports to the block's check that `lane` accesses `bytes` at `place`, if that is shared memory. False after a fault.
  bool check(const Inst*, int lane, const std::byte* place, uint32_t bytes, Access, const void* written = nullptr);
  // The host address of a lane's local memory. growLocal() enlarges it up to the stack's limit.
  std::byte* local(int lane) { return localMemory.data() + size_t{localStride} * lane; }
  uint32_t localBytes() const { return localStride; }
  bool growLocal(uint64_t bytes);

  // ---- reports
  const Inst* fault(Fault::Kind, const Inst*, int lane, std::string what);
  void reportStuck(uint32_t livingThreads);

  template <class T>
  T* lanes(int32_t offset) {
    return static_cast<T*>(static_cast<void*>(frame + offset));
  }
  Activation& activation() { return activations[currentActivation]; }
  Block& block() { return *owner; }
  uint32_t index() const { return number; }
  int firstActive() const { return __builtin_ctz(active); }
  std::array<uint32_t, 3> threadAt(uint32_t linear) const;

  std::array<uint64_t, laneCount> exchange{};  // values left by WarpSync::leave
  std::array<uint32_t, laneCount> exchangeFlags{};

 private:
  void load(int split);
  void save(const Inst* pc);
  const Inst* pickNext();
  bool releaseJoined();
  bool completeWarpSyncs();
  void deliver(uint64_t key, uint32_t members);
  bool merge(uint64_t key);
  void leaveJoins(int32_t from, int32_t until, uint32_t mask);
  // The split that ran last, if it is the only one and no join waits for it. This is the common case, in which nothing else must be
  // checked.
  Split* alone() {
    if (splitCount != 1 || last < 0) return nullptr;
    Split& split = splits[static_cast<size_t>(last)];
    return split.state != SplitState::unused && split.join < 0 ? &split : nullptr;
  }
  int newSplit(const Inst* pc, uint32_t mask, int32_t join, int32_t activation);
  int newJoin(const Inst* at, uint32_t expected, int32_t parent, int32_t activation);
  void freeSplit(int split);
  int newActivation();
  void retain(int32_t activation) { ++activations[activation].references; }
  void release(int32_t activation);
  void dropJoins();
  void shrinkJoins(uint32_t gone);
  void setMode(uint32_t mask);
  uint32_t endOfFrames() const;
  void enterFrame(const Function&, uint32_t frameOffset);
  void growRegisters(size_t bytes);

  Block* owner = nullptr;
  uint32_t number = 0;
  uint32_t living = 0;
  int32_t current = -1;
  int32_t last = -1;  // the split that ran last; the others run before it
  int32_t currentActivation = -1;
  uint64_t executed = 0;
  std::array<Split, 2 * laneCount> splits;
  int splitCount = 0;  // number of splits in use
  std::array<Join, 2 * laneCount> joins;
  std::vector<Activation> activations;
  std::vector<int32_t> freeActivations;
  std::vector<std::byte> registers;
  std::byte* registerBase = nullptr;
  uint64_t launchSerial = 0;  // the launch whose constants are in the outermost frame
  std::vector<std::byte> localMemory;
  uint32_t localStride = 0;
  std::array<Span, 4> spans;
  uint32_t nextSpan = 0;
};

}  // namespace vgpu::emulator
