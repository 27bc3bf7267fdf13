// Stream memory operations: write and wait for words in stream order. By a written word a process on the other side of shared memory learns
// that all earlier work of the stream is done.
#include <atomic>
#include <cstdio>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/memory/span.h"
#include "stub/emulator/stream/graph-node.h"

namespace vgpu::emulator::api {
namespace {

constexpr unsigned mostBatched = 256;  // cuda.h, cuStreamBatchMemOp

// A word of mapped memory, on any device.
template <class Value>
class Word {
 public:
  Word(Context& context, CUdeviceptr address) : span(MemorySpan::ofDevice(context.driver.space, address, sizeof(Value), everyDevice)) {
    require(address % sizeof(Value) == 0);
  }
  // Release: a thread that sees the value sees all earlier effects of the stream.
  void store(Value value) const {
    visit([&](std::atomic_ref<Value> word) { word.store(value, std::memory_order_release); });
  }
  Value load() const {
    Value value{};
    visit([&](std::atomic_ref<Value> word) { value = word.load(std::memory_order_acquire); });
    return value;
  }

 private:
  void visit(const auto& use) const {
    const MemorySpan now = span.current();
    now.forEach(0, sizeof(Value), [&](std::byte* host, uint64_t) { use(std::atomic_ref(valueAt<Value>(host))); });
  }
  MemorySpan span;
};

template <class Value>
bool holds(Value now, Value wanted, unsigned condition) {
  using Signed = std::make_signed_t<Value>;
  switch (condition) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<Signed>(now - wanted) >= 0;  // cyclic, as in cuda.h
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == wanted;
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & wanted) != 0;
    default:
      return static_cast<Value>(~(now | wanted)) != 0;  // CU_STREAM_WAIT_VALUE_NOR
  }
}

template <class Value>
Action writeAction(Context& context, CUdeviceptr address, Value value, unsigned flags) {
  require((flags & ~unsigned{CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER}) == 0);
  return [word = Word<Value>(context, address), value] {
    word.store(value);
    return Outcome::finished;
  };
}

template <class Value>
Action waitAction(Context& context, CUdeviceptr address, Value value, unsigned flags) {
  if (flags & CU_STREAM_WAIT_VALUE_FLUSH) refuse(CUDA_ERROR_NOT_SUPPORTED);  // CAN_FLUSH_REMOTE_WRITES is 0
  require(flags <= CU_STREAM_WAIT_VALUE_NOR);
  return [word = Word<Value>(context, address), value, flags] {
    return holds(word.load(), value, flags) ? Outcome::finished : Outcome::waiting;
  };
}

Action batchedAction(Context& context, const CUstreamBatchMemOpParams& operation) {
  switch (operation.operation) {
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      return writeAction<cuuint32_t>(context, operation.writeValue.address, operation.writeValue.value,
                                     operation.writeValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      return writeAction<cuuint64_t>(context, operation.writeValue.address, operation.writeValue.value64,
                                     operation.writeValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return waitAction<cuuint32_t>(context, operation.waitValue.address, operation.waitValue.value,
                                    operation.waitValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return waitAction<cuuint64_t>(context, operation.waitValue.address, operation.waitValue.value64,
                                    operation.waitValue.flags);
    case CU_STREAM_MEM_OP_BARRIER:
      return {};
    default:
      refuse(CUDA_ERROR_INVALID_VALUE);
  }
}

}  // namespace

Operation makeMemOps(Context& context, const CUDA_BATCH_MEM_OP_NODE_PARAMS& given) {
  require((given.paramArray != nullptr || given.count == 0) && given.count <= mostBatched && given.flags == 0);
  auto known =
      std::make_shared<MemOps>(MemOps{given.ctx, given.flags, {given.paramArray, given.paramArray + given.count}});
  std::vector<Action> actions;
  for (const CUstreamBatchMemOpParams& each : known->operations) {
    if (Action action = batchedAction(context, each)) actions.push_back(std::move(action));
  }
  // A wait that does not hold yet is repeated from the same operation.
  auto next = std::make_shared<size_t>(0);
  return {.weight = Weight::light,
          .action =
              [actions, next] {
                for (; *next < actions.size(); ++*next) {
                  if (actions[*next]() == Outcome::waiting) return Outcome::waiting;
                }
                *next = 0;
                return Outcome::finished;
              },
          .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
          .description = known};
}

namespace {

CUresult submit(CUstream handle, const auto& makeAction) {
  return enterContext([&](Context& context) {
    std::shared_ptr<Stream> stream = streamOf(context, handle);
    stream->submit({.weight = Weight::light, .action = makeAction(context), .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP});
  });
}

}  // namespace
}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return submit(stream, [&](Context& context) { return writeAction(context, address, value, flags); });
}

CUresult CUDAAPI cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return submit(stream, [&](Context& context) { return writeAction(context, address, value, flags); });
}

CUresult CUDAAPI cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return submit(stream, [&](Context& context) { return waitAction(context, address, value, flags); });
}

CUresult CUDAAPI cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return submit(stream, [&](Context& context) { return waitAction(context, address, value, flags); });
}

CUresult CUDAAPI cuStreamBatchMemOp_v2(CUstream handle, unsigned count, CUstreamBatchMemOpParams* operations,
                                       unsigned flags) {
  return enterContext([&](Context& context) {
    std::shared_ptr<Stream> stream = streamOf(context, handle);
    stream->submit(makeMemOps(context, {context.handle, count, operations, flags}));
  });
}
