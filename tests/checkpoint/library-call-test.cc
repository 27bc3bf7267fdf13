// Calls of libraries: what the worker refuses from a hostile program. The recording library ends the process if it receives an object that
// does not exist or is of another kind.
#include <doctest/doctest.h>
#include <kj/debug.h>
#include <stdlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include "session-fixture.h"
#include "vgpu/api/handle.h"
#include "vgpu/api/library.h"
#include "vgpu/api/wire-value.h"
#include "vgpu/wire/arena.h"

using namespace vgpu;
using namespace vgpu::test;

namespace {

using Words = std::vector<uint64_t>;

constexpr uint64_t objectOn(unsigned device, uint32_t index) { return makeHandle(api::Kind::LIBRARY_OBJECT, device, 0, index); }
constexpr uint64_t product = objectOn(0, 1), otherProduct = objectOn(1, 2), otherLayout = objectOn(1, 3),
                   otherEmulation = objectOn(1, 4);

template <typename Frame>
void setCall(Frame& frame, const std::string& symbol, const Words& block, uint32_t hostMask) {
  auto entry = std::ranges::find_if(api::libraryEntries, [&](auto& each) { return symbol == each.symbol; });
  KJ_REQUIRE(entry != api::libraryEntries.end(), "no such entry", symbol.c_str());
  frame.setEntry(entry->signature);
  frame.setSymbol(symbol.c_str());
  frame.setHostMask(hostMask);
  frame.setArguments(kj::arrayPtr(block.data(), block.size()).asBytes());
}

RecordedFrame create(uint64_t object, const std::string& symbol, const Words& block) {
  return makeFrame<api::Cuda::LibraryCreateParams>(0, api::Method::libraryCreate, handleDevice(object), [&](auto p) {
    p.setObject(object);
    setCall(p, symbol, block, 0);
  });
}

RecordedFrame ask(const std::string& symbol, const Words& block, uint32_t hostMask) {
  return makeFrame<api::Cuda::LibraryAskParams>(0, api::Method::libraryAsk, 0,
                                                [&](auto p) { setCall(p, symbol, block, hostMask); });
}

// Queries an attribute of a matrix product's descriptor, on the first GPU.
RecordedFrame askAttribute(uint64_t object) {
  constexpr api::HostRange value{0, 4}, written{0, 8};
  return ask("cublasLtMatmulDescGetAttribute", {object, 3, value.word(), 4, written.word()}, 1u << 2 | 1u << 4);
}

// Sets another object as an attribute of a matrix product's descriptor.
RecordedFrame hold(uint64_t object) {
  constexpr uint64_t emulationDescriptor = 38;  // CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR
  constexpr api::HostRange held{4 * sizeof(uint64_t), sizeof object};
  return ask("cublasLtMatmulDescSetAttribute", {product, emulationDescriptor, held.word(), sizeof object, object}, 1u << 2);
}

// Runs `body` in a worker with two GPUs and the objects.
std::string inCallingWorker(const std::function<void(TestSession&)>& body) {
  TestSession session;
  session.libraries = VGPU_LIBRARY_DOUBLES;
  return session.inWorker(
      [&](stub::Worker& worker) {
        worker.proceed();
        session.require(create(product, "cublasLtMatmulDescCreate", {0, 68, 0}));
        session.require(create(otherProduct, "cublasLtMatmulDescCreate", {0, 68, 0}));
        session.require(create(otherLayout, "cublasLtMatrixLayoutCreate", {0, 0, 16, 16, 16}));
        session.require(create(otherEmulation, "cublasLtEmulationDescCreate", {0}));
        body(session);
        session.require(askAttribute(product));
      },
      "devices=2");
}

void requireRefused(TestSession& session, RecordedFrame frame) {
  int32_t result = session.call(std::move(frame));
  KJ_REQUIRE(result == CUDA_ERROR_INVALID_HANDLE, result);
}

}  // namespace

TEST_CASE("a call takes an object of another GPU, but none of another kind") {
  CHECK(inCallingWorker([](TestSession& session) {
          session.require(askAttribute(otherProduct));
          requireRefused(session, askAttribute(otherLayout));
        }) == "");
}

TEST_CASE("a call takes no object that has ended on another GPU") {
  CHECK(inCallingWorker([](TestSession& session) {
          session.post(makeFrame<api::Cuda::LibraryDestroyParams>(0, api::Method::libraryDestroy, 1,
                                                                  [](auto p) { p.setObject(otherProduct); }));
          session.require(create(objectOn(1, 5), "cublasLtMatmulDescCreate", {0, 68, 0}));  // behind the object's end, in the same ring
          requireRefused(session, askAttribute(otherProduct));
        }) == "");
}

TEST_CASE("a descriptor may refer to an object of another GPU, but to none of another kind") {
  CHECK(inCallingWorker([](TestSession& session) {
          session.require(hold(otherEmulation));
          requireRefused(session, hold(otherLayout));
        }) == "");
}

TEST_CASE("a call takes an address of the session's arenas whether memory is there or not, and none where the worker's own memory can be") {
  CHECK(inCallingWorker([](TestSession& session) {
          constexpr uint64_t handle = objectOn(0, 6);
          session.require(create(handle, "cublasCreate_v2", {0}));
          auto scale = [&](uint64_t address) {
            constexpr api::HostRange alpha{5 * sizeof(uint64_t), sizeof(float)};
            return session.call(makeFrame<api::Cuda::LibraryCallParams>(0, api::Method::libraryCall, 0, [&](auto p) {
              setCall(p, "cublasSscal_v2", {handle, 0, alpha.word(), address, 1, 0}, 1u << 2);
            }));
          };
          for (uint64_t address : {deviceArena(0) + managedPart - 256, mappedArenaBase}) KJ_REQUIRE(scale(address) == 0, address);
          for (uint64_t address : {uint64_t{16}, hostArenaBase, toWire(&session), mappedArenaBase - 256})
            KJ_REQUIRE(scale(address) == CUDA_ERROR_INVALID_VALUE, address);
        }) == "");
}

TEST_CASE("the worker takes only short environment variables that decide a library's results, and unsets the others") {
  CHECK(inCallingWorker([](TestSession& session) {
          auto make = [&, object = objectOn(0, 6)](const std::string& variables) mutable {
            session.require(makeFrame<api::Cuda::LibraryCreateParams>(0, api::Method::libraryCreate, 0, [&](auto p) {
              p.setObject(object++);
              setCall(p, "cublasCreate_v2", {0}, 0);
              p.setVariables(kj::arrayPtr(variables.data(), variables.size()).asBytes());
            }));
          };
          auto is = [](const char* name, const char* value) { return getenv(name) != nullptr && getenv(name) == std::string(value); };
          using namespace std::string_literals;
          make("VGPU_UNLISTED=bad\0NVIDIA_TF32_OVERRIDE=0\0CUBLAS_WORKSPACE_CONFIG=:16:8\0PATH\0=\0\0CUBLAS_EMULATION_STRATEGY=eager\0"s);
          KJ_REQUIRE(is("NVIDIA_TF32_OVERRIDE", "0") && is("CUBLAS_WORKSPACE_CONFIG", ":16:8"));
          KJ_REQUIRE(getenv("VGPU_UNLISTED") == nullptr && getenv("CUBLAS_EMULATION_STRATEGY") == nullptr && getenv("PATH") != nullptr);
          make("NVIDIA_TF32_OVERRIDE="s + std::string(129, '1') + "\0CUBLAS_WORKSPACE_CONFIG="s + std::string(128, '1') + "\0\0"s);
          KJ_REQUIRE(getenv("NVIDIA_TF32_OVERRIDE") == nullptr && is("CUBLAS_WORKSPACE_CONFIG", std::string(128, '1').c_str()));
          make("NVIDIA_TF32_OVERRIDE=1"s);  // without a final zero
          make("");                         // as in recipes made before the list existed
          KJ_REQUIRE(getenv("NVIDIA_TF32_OVERRIDE") == nullptr && getenv("CUBLAS_WORKSPACE_CONFIG") == nullptr);
        }) == "");
}

namespace {

constexpr uint64_t held = made::stream, other = made::stream + 1, word = made::arena;

RecordedFrame streamCreate(uint64_t stream, unsigned flags) {
  return makeFrame<api::Cuda::StreamCreateParams>(0, api::Method::streamCreate, 0, [&](auto p) {
    p.setPhStream(stream);
    p.setFlags(flags);
  });
}

RecordedFrame writeWord(uint64_t stream, uint32_t value) {
  return makeFrame<api::Cuda::StreamWriteValue32Params>(0, api::Method::streamWriteValue32, 0, [&](auto p) {
    p.setStream(stream);
    p.setAddr(word);
    p.setValue(value);
  });
}

RecordedFrame awaitWord(uint64_t stream, uint32_t value) {
  return makeFrame<api::Cuda::StreamWaitValue32Params>(0, api::Method::streamWaitValue32, 0, [&](auto p) {
    p.setStream(stream);
    p.setAddr(word);
    p.setValue(value);
    p.setFlags(CU_STREAM_WAIT_VALUE_EQ);
  });
}

// A library call with a result in host memory, in `stream`, while `held` waits for a word. The write that ends the wait comes after the
// call.
void callBehindHeld(uint64_t stream) {
  setenv("VGPU_RECORD_GPU", "yes", 1);
  CHECK(inCallingWorker([stream](TestSession& session) {
          constexpr uint64_t handle = objectOn(0, 6);
          session.require(create(handle, "cublasCreate_v2", {0}));
          session.require(makeFrame<api::Cuda::LeaseParams>(0, api::Method::lease, 0, [](auto p) {
            p.setAddress(made::arena);
            p.setBytes(made::leaseBytes);
          }));
          session.post(memAlloc(0, word, 256));
          session.post(streamCreate(held, CU_STREAM_DEFAULT));
          session.post(streamCreate(other, CU_STREAM_NON_BLOCKING));
          if (stream != 0) session.require(ask("cublasSetStream_v2", {handle, stream}, 0));
          session.post(writeWord(0, 0));
          session.require(synchronize());
          session.post(awaitWord(held, 1));
          session.begin(makeFrame<api::Cuda::LibraryCallParams>(0, api::Method::libraryCall, 0, [&](auto p) {
            constexpr api::HostRange result{7 * sizeof(uint64_t), sizeof(float)};
            p.setStream(stream);
            setCall(p, "cublasSdot_v2", {handle, 4, word, 1, word, 1, result.word(), 0}, 1u << 6);
          }));
          session.post(writeWord(other, 1));
          KJ_REQUIRE(session.finish() == 0);
          session.require(synchronize());
          // The library handle's stream is the program's again.
          session.post(writeWord(0, 2));
          KJ_REQUIRE(session.readWord(word) == 2);
        }) == "");
  unsetenv("VGPU_RECORD_GPU");
}

}  // namespace

TEST_CASE("a library call that waits in the legacy default stream does not wait for a blocking stream that is held") {
  callBehindHeld(0);
}

TEST_CASE("a library call that waits does not wait for later work in its own stream") {
  callBehindHeld(held);
}
