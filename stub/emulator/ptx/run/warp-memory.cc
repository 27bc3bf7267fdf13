// Resolves a warp's addresses.
#include <algorithm>
#include <cstring>

#include "stub/emulator/ptx/run/block.h"
#include "stub/emulator/ptx/run/cluster.h"
#include "stub/emulator/ptx/run/error-texts.h"
#include "stub/emulator/ptx/run/hex.h"
#include "stub/emulator/ptx/run/warp.h"

namespace vgpu::emulator {
namespace {

std::string list(const std::array<uint32_t, 3>& v) {
  return "(" + std::to_string(v[0]) + ", " + std::to_string(v[1]) + ", " + std::to_string(v[2]) + ")";
}

std::string describeWindow(Block& block, uint64_t address) {
  const uint64_t window = windowOf(address);
  if (window == sharedWindow)
    return "shared memory offset " + hex(offsetIn(address)) + " of " + std::to_string(block.sharedBytes()) + " bytes";
  if (window == localWindow) return "local memory offset " + hex(offsetIn(address));
  if (window == paramWindow) return "parameter offset " + hex(offsetIn(address));
  if (window == parameterBufferWindow) {
    const auto buffer = block.grid().launches.findBuffer(address);
    if (!buffer) return "not a parameter buffer of this grid, or one that has already been launched";
    return "offset " + hex(address - buffer->base) + " of the " + std::to_string(buffer->bytes) + " bytes of a launch's parameters";
  }
  return block.launch().memory->describe(address);
}

}  // namespace

const Warp::Span* Warp::findSpan(uint64_t address, uint64_t bytes, bool write) {
  for (const Span& span : spans)
    if (address - span.base < span.bytes && bytes <= span.bytes - (address - span.base) && (span.writable || !write))
      return &span;
  Span found;
  uint64_t readable = 0;  // if more than its size
  Grid& grid = owner->grid();
  const uint64_t window = windowOf(address);
  if (window == sharedWindow) {
    const uint64_t rank = rankIn(address);
    const auto& blocks = owner->cluster().blocks;
    Block* const block = rank == ownRank ? owner : rank < blocks.size() ? blocks[rank] : nullptr;
    const uint64_t base = address >> rankShift << rankShift;
    if (block != nullptr && address - base >= reservedSharedBase) {
      found = {base + reservedSharedBase, reservedSharedBytes, block->reservedShared(), true};
    } else if (block != nullptr) {
      found = {base, block->sharedBytes(), block->shared(), true};
      readable = block->readableSharedBytes();
    }
  } else if (window == paramWindow) {
    found = {paramWindow, grid.parameters.size(), grid.parameters.data(), false};
  } else if (window == workspaceWindow) {
    found = {workspaceWindow, grid.workspace.size(), grid.workspace.data(), true};
  } else if (window == errorTextWindow) {
    const auto texts = errorTextBytes();
    found = {errorTextWindow, texts.size(), const_cast<std::byte*>(texts.data()), false};
  } else if (window == parameterBufferWindow) {
    if (const auto buffer = grid.launches.findBuffer(address)) found = {buffer->base, buffer->bytes, buffer->host, true};
  } else if (const auto region = grid.launch.memory->find(address)) {
    found = {region->base, region->bytes, region->host, region->writable};
  }
  const uint64_t offset = address - found.base;
  if (offset >= found.bytes || (write && !found.writable)) return nullptr;
  if (bytes > (write ? found.bytes : std::max(found.bytes, readable)) - offset) return nullptr;
  Span& slot = spans[nextSpan++ % spans.size()];
  slot = found;
  return &slot;
}

std::byte* Warp::locate(const Inst* inst, int lane, uint64_t address, uint32_t bytes, uint32_t align, bool write) {
  const auto refuse = [&](Fault::Kind kind, const char* what) {
    fault(kind, inst, lane,
          std::string(what) + " of " + std::to_string(bytes) + " bytes " + (write ? "to " : "from ") + hex(address) +
              ": " + describeWindow(*owner, address));
    return nullptr;
  };
  if (address & (align - 1))
    return refuse(Fault::Kind::misalignedAddress, write ? "a misaligned write" : "a misaligned read");
  if (windowOf(address) == localWindow) {
    const uint64_t offset = offsetIn(address);
    if (offset < localStride && bytes <= localStride - offset) return local(lane) + offset;
  } else if (const Span* span = findSpan(address, bytes, write)) {
    return span->host + (address - span->base);
  }
  return refuse(Fault::Kind::illegalAddress, write ? "an illegal write" : "an illegal read");
}

std::byte* Warp::access(const Inst* inst, int lane, uint64_t address, uint32_t bytes, uint32_t align, Access access) {
  std::byte* const place = locate(inst, lane, address, bytes, align, writes(access));
  return place && owner->check() && !check(inst, lane, place, bytes, access) ? nullptr : place;
}

bool Warp::check(const Inst* inst, int lane, const std::byte* place, uint32_t bytes, Access access,
                 const void* written) {
  const auto offset = static_cast<uint64_t>(place - owner->shared());
  if (place < owner->shared() || offset >= owner->sharedBytes()) return true;
  const uint32_t thread = number * laneCount + static_cast<uint32_t>(lane);
  const bool changesNothing = written && std::memcmp(place, written, bytes) == 0;
  const auto touched = static_cast<uint32_t>(std::min<uint64_t>(bytes, owner->sharedBytes() - offset));
  const auto found = owner->check()->touch(access, thread, offset, touched, changesNothing);
  if (!found) return true;
  std::string what = found->what;
  if (found->other) what += ": thread " + list(threadAt(*found->other));
  fault(found->kind, inst, lane, std::move(what));
  return false;
}

void Warp::reportStuck(uint32_t livingThreads) {
  for (const Split& split : splits) {
    if (split.state == SplitState::unused) continue;
    const bool atBarrier = split.state == SplitState::atBarrier;
    const std::string place = !atBarrier ? "a warp-wide instruction with members " + hex(split.syncMask)
                              : split.barrier >= firstWarpgroupIndex ? "an instruction of a warpgroup"
                                                                     : "barrier " + std::to_string(split.barrier);
    fault(Fault::Kind::divergentBarrier, atBarrier ? split.pc - 1 : split.pc, __builtin_ctz(split.mask),
          "waits for ever at " + place + ": " + std::to_string(livingThreads) +
              " threads of the block live, and those that are missing wait elsewhere");
    return;
  }
}

const Inst* Warp::fault(Fault::Kind kind, const Inst* inst, int lane, std::string what) {
  const Function* function = nullptr;
  for (const auto& each : owner->kernel().functions)
    if (!each->code.empty() && inst >= each->code.data() && inst < each->code.data() + each->code.size())
      function = each.get();
  std::string report = "kernel " + owner->kernel().name + ", block " + list(owner->index()) + ", thread " +
                       list(threadAt(number * laneCount + static_cast<uint32_t>(lane))) + ": " + what;
  if (function) {
    const SourceLine& line = function->lines[static_cast<size_t>(inst - function->code.data())];
    report += "; in " + function->name + ", PTX line " + std::to_string(line.ptx);
    const auto file = owner->kernel().files.find(line.file);
    if (line.line && file != owner->kernel().files.end())
      report += ", " + file->second + ":" + std::to_string(line.line);
  }
  owner->grid().report({kind, std::move(report)});
  return nullptr;
}

}  // namespace vgpu::emulator
