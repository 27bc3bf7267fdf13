// A program and its workers, for tests of whole snapshots. The program's memory — segment, host arena, object list — is
// the test's; each worker lives in a process of its own, as in real life, because arenas and modules have one place a
// process.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../manifest-text.h"
#include "vgpu/snapshot/manifest.h"
#include "checkpoint/snapshot.h"
#include "../files.h"
#include "stub/worker/worker.h"
#include "vgpu/wire/ring.h"

namespace vgpu::test {

class TestSession {
 public:
  TestSession();

  // Runs `body` with a worker that has this session's memory, in a child process. What the exception said that ended
  // it; empty where none did. `settings` are VGPU_EMULATED's.
  // `adapt` may replace functions of the worker's driver.
  using Body = std::function<void(stub::Worker&)>;
  using Adapt = std::function<void(stub::Driver&)>;
  std::string inWorker(const Body& body, const std::string& settings = "", const Adapt& adapt = nullptr);

  // Sends a frame that nobody waits for; the list takes it where it builds an object.
  void post(RecordedFrame frame);
  // Sends one and waits for the answer, or for the GPU. CUDA's result.
  int32_t call(RecordedFrame frame);
  // Like call(), and throws unless the result is success.
  void require(RecordedFrame frame);
  // Sends one as another thread of the program does, and does not wait: finish() does, and returns CUDA's result. One at a time.
  void begin(RecordedFrame frame);
  int32_t finish();
  bool isAnswered() const;  // what was begun
  // Hands the list what was posted, and closes it: another process, or save(), reads it next.
  void commit();

  uint32_t readWord(uint64_t address);     // through a slab, as a program's cudaMemcpy
  const std::byte* reply() const;          // of the last call
  bool saysFound() { return firstResult(); }    // what the last blobFind answered
  bool saysMissing();  // what the last moduleLoad answered
  std::vector<std::byte> program() const;  // every byte of the segment that is not the GPU's or a worker's to write

  ScratchDirectory scratch;  // `list` and snapshots
  std::string imageStore;    // folder of the store that workers have; empty: they have none
  std::string libraries;     // folder of the libraries that they call; empty: they have none
  ImageCounters& images() { return *counters; }  // of the last worker
  // To go on with what another process has sent: building frames have numbers from here on.
  void numberFrom(uint64_t number) { numbered = number; }
  Segment& segment() { return *mapped; }

 private:
  uint64_t send(RecordedFrame frame, uint16_t slot);
  uint64_t ask(RecordedFrame frame, uint16_t slot);
  int32_t await(uint64_t sequence, uint16_t slot);
  void openRing(uint8_t device);
  bool firstResult();
  MemoryFile segmentFile, arenaFile;
  std::unique_ptr<Segment> mapped;
  Mapping counterMemory;
  ImageCounters* counters;
  std::vector<RecordedFrame> recorded;
  std::set<uint8_t> opened;       // rings
  uint64_t numbered = 0;          // frames
  std::optional<uint64_t> begun;  // sequence number of what finish() waits for
};

// What the test program makes of its GPU. Device memory at fixed places, one module.
namespace made {
constexpr uint64_t arena = 0x2000'0000'0000;
constexpr uint64_t leaseBytes = 32 * MiB;
constexpr uint64_t counters = arena, large = arena + 4096, gone = arena + 16 * MiB;
constexpr uint64_t largeBytes = 9 * MiB + 300;  // several chunks, the last not whole
constexpr uint64_t module = 101, addFunction = 201, totalVariable = 301, seenVariable = 302, stream = 401, event = 501;
}  // namespace made

// Its image, with the final zero.
std::span<const std::byte> madeImage();
// Brings an image to the worker as a program does: asks for it, and sends it in one slab where it is not found.
void bringImage(TestSession& session, uint64_t blob, std::span<const std::byte> image);
RecordedFrame blobFind(uint64_t blob, std::span<const uint8_t> digest, uint64_t totalBytes);
// Out of slab 0: all of it, or a part.
RecordedFrame blobWrite(uint64_t blob, uint64_t totalBytes);
RecordedFrame blobWrite(uint64_t blob, uint64_t totalBytes, uint64_t offset, uint32_t bytes);

// add(p, v): *p += v and total += v.
RecordedFrame add(uint64_t p, uint32_t v, uint64_t stream = 0);
RecordedFrame synchronize();

// Makes all of `made`, runs a few kernels, fills `large`; then lets the worker be quiet and posts what it does not
// consume any more: kernels, a copy, the end of a stream and of an allocation.
void buildAndStop(TestSession& session, stub::Worker& worker);
// What must hold once the pending is executed. Throws where it does not.
void requireFinished(TestSession& session);

snapshot::Identity someIdentity();

// A session that was saved in its worker. `make` builds what it has, and quiesces the worker.
struct SavedSession {
  explicit SavedSession(const std::function<void(TestSession&, stub::Worker&)>& make);
  // Restores it in another worker, and runs `then` there. What the exception said that ended it.
  std::string restored(const TestSession::Body& then = [](stub::Worker&) {});

  TestSession session;
  std::string path = session.scratch.path + "/snapshot";
};

// Checks that `text` has this part, and shows it if not.
bool contains(const std::string& text, const std::string& part);

// Applies `change` to the JSON of a snapshot's manifest and seals it, as one who knows the format could.
template <typename Change>
void forgeManifest(const std::string& snapshot, Change change) {
  std::string path = snapshot + "/manifest.json", text = readFile(path);
  auto json = manifestOf(text);
  change(json);
  writeFile(path, sealed(json));
}

}  // namespace vgpu::test
