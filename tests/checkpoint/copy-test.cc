// The worker's copies: each type of source with each type of destination, and refusals of memory and objects that are not the session's.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <utility>

#include "session-fixture.h"
#include "stub/worker/execution.h"

using namespace vgpu;
using namespace vgpu::test;

namespace {

using api::Place;

constexpr uint64_t base = made::arena, end = made::arena + made::leaseBytes;
// An array of three slices of five rows of 16 words.
constexpr uint64_t array = makeHandle(api::Kind::ARRAY, 0, 0, 11), rowBytes = 64, rows = 5, slices = 3;
constexpr uint64_t other = makeHandle(api::Kind::ARRAY, 1, 0, 11);  // on another GPU
constexpr uint64_t arrayBytes = rowBytes * rows * slices;
// Rows and slices in memory with gaps between them.
constexpr uint64_t pitch = 96, slice = 7 * pitch;
constexpr uint64_t stream = makeHandle(api::Kind::STREAM, 0, 0, 12);
const Place memory = Place::address(base), pitched = Place::address(base + 4096), slab = Place::slab(60), call;

RecordedFrame lease() {
  return makeFrame<api::Cuda::LeaseParams>(0, api::Method::lease, 0, [](auto p) {
    p.setAddress(base);
    p.setBytes(made::leaseBytes);
  });
}

// Runs `body` in a worker that has memory, the array and a stream.
std::string inCopyingWorker(const std::function<void(TestSession&)>& body) {
  TestSession session;
  return session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    session.require(lease());
    session.require(makeFrame<api::Cuda::ArrayCreateParams>(0, api::Method::arrayCreate, 0, [](auto p) {
      p.setArray(array);
      p.setShape(CUDA_ARRAY3D_DESCRIPTOR{rowBytes / 4, rows, slices, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0});
    }));
    session.post(makeFrame<api::Cuda::StreamCreateParams>(0, api::Method::streamCreate, 0, [](auto p) { p.setPhStream(stream); }));
    body(session);
    session.require(synchronize());
  });
}

// Byte `index` of the data that the tests copy.
std::byte byteAt(uint64_t index) { return static_cast<std::byte>(index * 7 + index / 251); }

kj::Array<kj::byte> pattern(uint64_t bytes) {
  auto data = kj::heapArray<kj::byte>(bytes);
  for (uint64_t i = 0; i < bytes; ++i) data[i] = std::to_integer<kj::byte>(byteAt(i));
  return data;
}

void requirePattern(const std::byte* found, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i) KJ_REQUIRE(found[i] == byteAt(i), "another byte", i);
}

// A frame with `bytes` of inline data; `more` sets further fields.
RecordedFrame inlined(Place to, uint64_t bytes, uint64_t width, const std::function<void(api::Cuda::Copy3dParams::Builder&)>& more) {
  return copy3d(api::Method::copy3d, to, call, width, [&](auto& p) {
    more(p);
    p.setData(pattern(bytes));
  });
}

void requireRefused(TestSession& session, RecordedFrame frame, int32_t why = CUDA_ERROR_INVALID_VALUE) {
  bool isPosted = frame.method == api::Method::copy3d;
  int32_t result = CUDA_SUCCESS;
  if (isPosted) {
    session.post(std::move(frame));
    session.require(synchronize());
    result = session.segment().header().deferred[0].exchange(0);
  } else {
    result = session.call(std::move(frame));
  }
  KJ_REQUIRE(result == why, "another result of a copy that is refused", isPosted, result, why);
}

// Requires that both routes, posted and waited for, refuse the copy.
void requireBothRefused(TestSession& session, const std::function<RecordedFrame(api::Method)>& frame,
                        int32_t why = CUDA_ERROR_INVALID_VALUE) {
  requireRefused(session, frame(api::Method::copy3d), why);
  requireRefused(session, frame(api::Method::copy3dBack), why);
}

}  // namespace

TEST_CASE("bytes go from a frame to memory, an array, memory again, a slab and a slot, and are the same") {
  CHECK(inCopyingWorker([](TestSession& session) {
    // One row from the frame, which has only the fields place, stream and data.
    session.post(makeFrame<api::Cuda::Copy3dParams>(0, api::Method::copy3d, 0, [](auto p) {
      p.setTo(base);
      p.setData(pattern(arrayBytes));
    }));
    session.require(copy3dBack(slab, memory, arrayBytes));
    requirePattern(session.segment().slab(60), arrayBytes);
    // To rows with gaps between them, from there into the array, and to contiguous memory.
    session.post(copy3d(api::Method::copy3d, pitched, memory, rowBytes, [](auto& p) {
      p.setHeight(rows), p.setDepth(slices);
      p.setFromPitch(rowBytes), p.setFromSlice(rowBytes * rows), p.setToPitch(pitch), p.setToSlice(slice);
    }));
    session.post(copy3d(api::Method::copy3d, Place::array(array), pitched, rowBytes, [](auto& p) {
      p.setHeight(rows), p.setDepth(slices);
      p.setFromPitch(pitch), p.setFromSlice(slice);
    }));
    session.require(copy3dBack(call, Place::array(array), rowBytes, rows, slices));
    requirePattern(session.reply(), arrayBytes);
    // A part of the array, through a slab, to the array's other end.
    session.require(copy3d(api::Method::copy3dBack, slab, Place::array(array), 8, [](auto& p) {
      p.setHeight(2), p.setFromX(4), p.setFromRow(1), p.setFromZ(2);
    }));
    for (uint64_t row = 0; row < 2; ++row)
      for (uint64_t x = 0; x < 8; ++x)
        KJ_REQUIRE(session.segment().slab(60)[row * 8 + x] == byteAt((2 * rows + 1 + row) * rowBytes + 4 + x));
    session.segment().slabState(60).busy = 1;
    session.post(copy3d(api::Method::copy3d, Place::array(array), slab, 8, [](auto& p) {
      p.setStream(stream);
      p.setHeight(2), p.setToX(rowBytes - 8), p.setToRow(rows - 2);
    }));
    session.require(synchronize());
    KJ_REQUIRE(session.segment().slabState(60).busy == 0, "the slab was not given back");
    session.require(copy3d(api::Method::copy3dBack, call, Place::array(array), 8, [](auto& p) {
      p.setFromX(rowBytes - 8), p.setFromRow(rows - 1);
    }));
    for (uint64_t x = 0; x < 8; ++x)
      KJ_REQUIRE(session.reply()[x] == byteAt((2 * rows + 2) * rowBytes + 4 + x));
    // Rows whose data is in the frame.
    session.post(inlined(pitched, 60, 20, [](auto& p) { p.setHeight(3), p.setToPitch(pitch); }));
    session.require(copy3d(api::Method::copy3dBack, call, pitched, 20, [](auto& p) { p.setHeight(3), p.setFromPitch(pitch); }));
    requirePattern(session.reply(), 60);
    KJ_REQUIRE(session.segment().header().deferred[0] == CUDA_SUCCESS);
  }) == "");
}

TEST_CASE("a source or destination that is not the session's is refused, and a lent slab is given back") {
  CHECK(inCopyingWorker([](TestSession& session) {
    auto between = [&](Place to, Place from, uint64_t bytes, int32_t why = CUDA_ERROR_INVALID_VALUE) {
      requireBothRefused(
          session, [&](api::Method method) { return copy3d(method, to, from, bytes, [](auto&) {}); }, why);
    };
    // Memory that the session does not own, or that ends too early.
    for (Place foreign : {Place::address(0x1234'5678'0000), Place::address(end - 3), Place::address(1), Place::address(~uint64_t{0}),
                          Place(~uint64_t{0}), Place((uint64_t{1} << 52) - 1)}) {
      between(foreign, memory, 4);
      between(memory, foreign, 4);
    }
    between(memory, memory, made::leaseBytes + 1);
    between(memory, memory, 0);
    between(memory, memory, ~uint64_t{0});
    // Slabs that the session does not have, or that are too small.
    for (uint64_t none : {slabCount, uint64_t{1} << 32, (uint64_t{1} << 60) - 1}) {
      between(memory, Place((uint64_t{1} << 60) + none), 4);
      between(Place((uint64_t{1} << 60) + none), memory, 4);
    }
    session.segment().slabState(60).busy = 1;
    between(memory, slab, slabBytes + 1);
    KJ_REQUIRE(session.segment().slabState(60).busy == 0, "the slab of a refused copy was not given back");
    between(slab, memory, slabBytes + 1);
    between(slab, slab, 4);
    session.segment().slabState(60).busy = 1;
    requireRefused(session, copy3d(api::Method::copy3d, memory, slab, 4, [](auto& p) { p.setStream(77); }),
                   CUDA_ERROR_INVALID_HANDLE);
    KJ_REQUIRE(session.segment().slabState(60).busy == 0, "the slab of a copy in no stream was not given back");
    // Handles of objects that are not arrays, or of no object.
    between(Place(stream), memory, 4);
    between(memory, Place(made::module), 4);
    between(Place::array(array + 1), memory, 4, CUDA_ERROR_INVALID_HANDLE);
    between(memory, Place(makeHandle(api::Kind::ARRAY, 9, 0, 11)), 4, CUDA_ERROR_INVALID_HANDLE);
  }) == "");
}

namespace {

// A driver that returns CUDA_ERROR_OUT_OF_MEMORY, and what it has observed meanwhile. State of the child process that runs the worker.
std::atomic<bool> lacksMemory{false}, wasBusy{true};
std::atomic<unsigned> copies{0};
SlabState* copied = nullptr;
decltype(stub::Driver::cuMemcpyHtoDAsync_v2) copyToDevice;
decltype(stub::Driver::cuMemHostRegister_v2) registerHost;

CUresult copyOrLack(CUdeviceptr to, const void* from, size_t bytes, CUstream inStream) {
  if (copied != nullptr) ++copies, wasBusy = wasBusy && copied->busy != 0;
  return lacksMemory.exchange(false) ? CUDA_ERROR_OUT_OF_MEMORY : copyToDevice(to, from, bytes, inStream);
}
CUresult registerOrLack(void* address, size_t bytes, unsigned flags) {
  return lacksMemory ? CUDA_ERROR_OUT_OF_MEMORY : registerHost(address, bytes, flags);
}

}  // namespace

TEST_CASE("a slab is given back once if its copy fails again for lack of memory") {
  TestSession session;
  session.segment().header().fold = static_cast<uint32_t>(FoldMode::ALWAYS);
  auto adapt = [](stub::Driver& driver) { copyToDevice = std::exchange(driver.cuMemcpyHtoDAsync_v2, copyOrLack); };
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    bringImage(session, 1, madeImage());
    session.require(moduleLoad(0, made::module, 1));
    session.require(moduleFunction(0, made::addFunction, made::module, "add"));
    session.require(lease());
    session.post(memAlloc(0, base, 256));
    for (int i = 0; i < 64; ++i) session.post(add(base, 1));  // leaves folded graphs, whose destruction frees memory
    session.require(synchronize());
    copied = &session.segment().slabState(60);
    copied->busy = 1;
    lacksMemory = true;
    session.post(copy3d(Place::address(base), slab, 4));
    session.require(synchronize());
    KJ_REQUIRE(copies == 2, "the copy was not executed again", copies.load());
    KJ_REQUIRE(wasBusy, "it was executed with a slab that was free already");
    KJ_REQUIRE(copied->busy == 0, "its slab was not given back");
    KJ_REQUIRE(session.segment().header().deferred[0] == CUDA_SUCCESS);
  }, "", adapt) == "");
}

TEST_CASE("a slab is given back if its copy is not executed because host memory cannot be registered") {
  TestSession session;
  auto adapt = [](stub::Driver& driver) { registerHost = std::exchange(driver.cuMemHostRegister_v2, registerOrLack); };
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    session.require(lease());
    session.require(makeFrame<api::Cuda::HostLeaseParams>(0, api::Method::hostLease, 0, [](auto p) {
      p.setAddress(hostArenaBase);
      p.setBytes(1 * MiB);
    }));
    lacksMemory = true;
    session.segment().slabState(60).busy = 1;
    session.post(copy3d(memory, slab, 4));
    session.require(synchronize());
    KJ_REQUIRE(session.segment().slabState(60).busy == 0, "its slab was not given back");
    KJ_REQUIRE(session.segment().header().deferred[0] == CUDA_ERROR_OUT_OF_MEMORY);
  }, "", adapt) == "");
}

TEST_CASE("a slab is given back if its piece of an image is refused") {
  CHECK(inCopyingWorker([](TestSession& session) {
    session.require(blobFind(9, {}, 100));
    session.segment().slabState(0).busy = 1;
    session.post(blobWrite(9, 100, 50, 50));  // not the next piece in order
    session.require(synchronize());
    KJ_REQUIRE(session.segment().slabState(0).busy == 0);
    KJ_REQUIRE(session.segment().header().deferred[0].exchange(0) == CUDA_ERROR_INVALID_VALUE);
  }) == "");
}

TEST_CASE("a frame supplies no more bytes than its Data list has, and a slot receives bytes only for a call that is waited for") {
  CHECK(inCopyingWorker([](TestSession& session) {
    requireRefused(session, inlined(memory, 100, 101, [](auto&) {}));
    requireRefused(session, inlined(memory, 100, 20, [](auto& p) { p.setHeight(6), p.setToPitch(20); }));
    requireRefused(session, inlined(memory, 100, uint64_t{1} << 40, [](auto& p) {
      p.setHeight(uint64_t{1} << 40), p.setDepth(uint64_t{1} << 40), p.setToPitch(uint64_t{1} << 40);
    }));
    requireRefused(session, copy3d(memory, call, 4));      // no data
    requireRefused(session, copy3d(memory, call, 0));
    requireRefused(session, copy3d(call, memory, 4));      // posted: nobody waits
    requireRefused(session, copy3d(call, call, 4));
    requireRefused(session, copy3dBack(call, memory, replyBytes + 1));
    requireRefused(session, copy3dBack(call, slab, 4));
    session.require(copy3dBack(call, memory, replyBytes));
  }) == "");
}

TEST_CASE("a slot without room for a reply receives no bytes") {
  TestSession session;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    session.require(lease());
    worker.quiesce();
    worker.runQuiesced([&](stub::SessionState& on) {
      auto frame = copy3dBack(call, memory, 4);
      stub::Reply reply;
      KJ_REQUIRE(on.execute(frame.method, 0, frame.words, 0, replyCount, reply) == CUDA_ERROR_INVALID_VALUE);
      KJ_REQUIRE(on.execute(frame.method, 0, frame.words, 0, replyCount - 1, reply) == CUDA_SUCCESS);
    });
  }) == "");
}

TEST_CASE("a box beyond the array's extent, and rows with inconsistent pitches, are refused") {
  CHECK(inCopyingWorker([](TestSession& session) {
    constexpr uint64_t most = ~uint64_t{0};
    struct Corner {
      uint64_t x, row, z, width, height, depth;
    };
    for (auto [x, row, z, width, height, depth] : {Corner{0, 0, 0, rowBytes + 4, 1, 1}, {4, 0, 0, rowBytes, 1, 1},
                                                   {0, 0, 0, 4, rows + 1, 1}, {0, 2, 0, 4, rows - 1, 1},
                                                   {0, 0, 0, 4, 1, slices + 1}, {0, 0, slices, 4, 1, 1},
                                                   {0, rows, 0, 4, 1, 1}, {most - 3, 0, 0, 8, 1, 1},
                                                   {0, most, 0, 4, 2, 1}, {0, 0, most, 4, 1, 2},
                                                   {0, 0, 0, uint64_t{1} << 63, 2, 1}, {0, 0, 0, 4, most, most}}) {
      requireRefused(session, copy3d(api::Method::copy3d, Place::array(array), slab, width, [&](auto& p) {
        p.setHeight(height), p.setDepth(depth), p.setToX(x), p.setToRow(row), p.setToZ(z);
      }));
      requireRefused(session, copy3d(api::Method::copy3dBack, slab, Place::array(array), width, [&](auto& p) {
        p.setHeight(height), p.setDepth(depth), p.setFromX(x), p.setFromRow(row), p.setFromZ(z);
      }));
    }
    struct Rows {
      uint64_t pitch, slice, width, height, depth;
    };
    // The last span 2^128 + 3 bytes, which is 3 if overflow is not checked.
    for (auto [pitch, slice, width, height, depth] :
         {Rows{0, 64, 4, 1, 2}, {3, 64, 4, 2, 1}, {8, 12, 4, 2, 2}, {most, 0, 4, 2, 1}, {made::leaseBytes, 0, 4, 2, 1},
          {8, most - 7, 4, 2, 2}, {5, most, 4, most / 5 * 3 + 1, most}}) {
      auto withRows = [&](api::Method method) {
        return copy3d(method, memory, memory, width, [&](auto& p) {
          p.setHeight(height), p.setDepth(depth);
          p.setFromPitch(pitch), p.setFromSlice(slice), p.setToPitch(pitch), p.setToSlice(slice);
        });
      };
      requireBothRefused(session, withRows);
    }
  }) == "");
}

TEST_CASE("an array of another GPU is copied from this one's ring, within its extent") {
  TestSession session;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    session.require(lease());
    auto create = makeFrame<api::Cuda::ArrayCreateParams>(0, api::Method::arrayCreate, 1, [](auto p) {
      p.setArray(other);
      p.setShape(CUDA_ARRAY3D_DESCRIPTOR{rowBytes / 4, rows, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0});
    });
    session.require(std::move(create));
    session.post(inlined(memory, rowBytes * rows, 0, [](auto&) {}));
    session.post(copy3d(Place::array(other), memory, rowBytes));
    session.require(copy3dBack(call, Place::array(other), rowBytes));
    requirePattern(session.reply(), rowBytes);
    requireBothRefused(session, [](api::Method method) {
      return copy3d(method, memory, Place::array(other), 4, [](auto& p) { p.setFromRow(rows); });
    });
    requireBothRefused(
        session, [](api::Method method) { return copy3d(method, memory, Place::array(other + 1), 4, [](auto&) {}); },
        CUDA_ERROR_INVALID_HANDLE);
  }, "devices=2") == "");
}

TEST_CASE("a range that wraps around the address space is refused") {
  TestSession session;
  CHECK(session.inWorker([](stub::Worker& worker) {
    worker.runQuiesced([](stub::SessionState& on) { KJ_REQUIRE(!on.ownsMemory(~uint64_t{0} - 50, 100)); });
  }) == "");
}
