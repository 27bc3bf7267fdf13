// Chunks read from files, which the GPU compares with their digests. (On the emulated device the host compares, unless its driver is
// adapted as here.)
#include <doctest/doctest.h>

#include <cstring>
#include <utility>

#include "session-fixture.h"
#include "vgpu/snapshot/chunk.h"

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::test;

namespace {

void compareOnGpu(stub::Driver& driver) { driver.noteAllocation = nullptr; }

// In the worker's process.
decltype(stub::Driver::cuMemcpyHtoDAsync_v2) copyRightly;

CUresult copyWrongly(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  if (bytes != snapshot::chunkBytes) return copyRightly(to, from, bytes, stream);
  static std::vector<std::byte> altered(bytes);
  std::memcpy(altered.data(), from, bytes);
  altered[bytes / 2] ^= std::byte{1};
  return copyRightly(to, altered.data(), bytes, stream);
}

std::string saved(TestSession& session) {
  std::string path = session.scratch.path + "/snapshot";
  CHECK(session.inWorker([&](stub::Worker& worker) {
    buildAndStop(session, worker);
    save(worker, path, session.scratch.path + "/list", someIdentity(), nullptr);
  }) == "");
  return path;
}

}  // namespace

TEST_CASE("a session whose memory a GPU compares goes on") {
  TestSession session;
  std::string path = saved(session);
  CHECK(session.inWorker(
            [&](stub::Worker& worker) {
              proceed(worker, restore(worker, path, nullptr));
              requireFinished(session);
            },
            "", compareOnGpu) == "");
}

TEST_CASE("a chunk whose bytes on the GPU differ from the saved ones is refused, with its file") {
  TestSession session;
  std::string path = saved(session);
  auto adapt = [](stub::Driver& driver) {
    compareOnGpu(driver);
    copyRightly = std::exchange(driver.cuMemcpyHtoDAsync_v2, copyWrongly);
  };
  std::string error = session.inWorker([&](stub::Worker& worker) { restore(worker, path, nullptr); }, "", adapt);
  CHECK(contains(error, "pack-"));
  CHECK(contains(error, "its digest does not match; the file was altered or damaged"));
}
