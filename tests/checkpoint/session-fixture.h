// A program and its workers, for tests of whole snapshots. The program's memory (segment, host arena, object list) belongs to the test's
// process; each worker runs in a child process, as in production, because arenas and modules have fixed addresses in a process.
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

  // Runs `body` with a worker that has this session's memory, in a child process. Returns the text of the exception that ended it; empty if
  // there was none. `settings` is the value of VGPU_EMULATED. `adapt` may replace functions of the worker's driver.
  using Body = std::function<void(stub::Worker&)>;
  using Adapt = std::function<void(stub::Driver&)>;
  std::string inWorker(const Body& body, const std::string& settings = "", const Adapt& adapt = nullptr);

  // Sends a frame without waiting for it; the object list records it if it builds an object.
  void post(RecordedFrame frame);
  // Sends a frame and waits for its reply, or for the GPU. Returns CUDA's result.
  int32_t call(RecordedFrame frame);
  // Like call(), but throws if the result is not success.
  void require(RecordedFrame frame);
  // Sends a frame as another thread of the program does, without waiting; finish() waits and returns CUDA's result. One at a time.
  void begin(RecordedFrame frame);
  int32_t finish();
  bool isAnswered() const;  // the frame that begin() sent
  // Passes posted frames to the object list and closes it: another process, or save(), reads it next.
  void commit();

  uint32_t readWord(uint64_t address);     // through a slab, as cudaMemcpy does
  const std::byte* reply() const;          // of the last call
  bool saysFound() { return firstResult(); }    // result of the last blobFind
  bool saysMissing();  // result of the last moduleLoad
  std::vector<std::byte> program() const;  // every byte of the segment that neither the GPU nor a worker writes

  ScratchDirectory scratch;  // `list` and snapshots
  std::string imageStore;    // folder of the workers' image store; empty: none
  std::string libraries;     // folder of the workers' libraries; empty: none
  ImageCounters& images() { return *counters; }  // of the last worker
  // Numbers building frames from `number` on: to continue what another process has sent.
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
  std::optional<uint64_t> begun;  // sequence number that finish() waits for
};

// The objects of the test program. Device memory at fixed addresses, one module.
namespace made {
constexpr uint64_t arena = 0x2000'0000'0000;
constexpr uint64_t leaseBytes = 32 * MiB;
constexpr uint64_t counters = arena, large = arena + 4096, gone = arena + 16 * MiB;
constexpr uint64_t largeBytes = 9 * MiB + 300;  // several chunks, the last one partial
constexpr uint64_t module = 101, addFunction = 201, totalVariable = 301, seenVariable = 302, stream = 401, event = 501;
}  // namespace made

// Image of the module, with the final zero.
std::span<const std::byte> madeImage();
// Brings an image to the worker as a program does: asks for it by digest, and sends it in one slab if it is not found.
void bringImage(TestSession& session, uint64_t blob, std::span<const std::byte> image);
RecordedFrame blobFind(uint64_t blob, std::span<const uint8_t> digest, uint64_t totalBytes);
// From slab 0: all of it, or a part.
RecordedFrame blobWrite(uint64_t blob, uint64_t totalBytes);
RecordedFrame blobWrite(uint64_t blob, uint64_t totalBytes, uint64_t offset, uint32_t bytes);

// add(p, v): *p += v and total += v.
RecordedFrame add(uint64_t p, uint32_t v, uint64_t stream = 0);
RecordedFrame synchronize();

// Makes all of `made`, runs a few kernels and fills `large`; then quiesces the worker and posts calls that stay pending: kernels, a copy,
// the end of a stream and of an allocation.
void buildAndStop(TestSession& session, stub::Worker& worker);
// Checks the state after the pending calls are executed. Throws if it is wrong.
void requireFinished(TestSession& session);

snapshot::Identity someIdentity();

// A session that was saved by its worker. `make` builds its objects and quiesces the worker.
struct SavedSession {
  explicit SavedSession(const std::function<void(TestSession&, stub::Worker&)>& make);
  // Restores the session in another worker and runs `then` there. Returns the text of the exception that ended it.
  std::string restored(const TestSession::Body& then = [](stub::Worker&) {});

  TestSession session;
  std::string path = session.scratch.path + "/snapshot";
};

// Checks that `text` contains `part`, and prints it if not.
bool contains(const std::string& text, const std::string& part);

// Applies `change` to the JSON of a snapshot's manifest and seals it, as an attacker who knows the format could.
template <typename Change>
void forgeManifest(const std::string& snapshot, Change change) {
  std::string path = snapshot + "/manifest.json", text = readFile(path);
  auto json = manifestOf(text);
  change(json);
  writeFile(path, sealed(json));
}

}  // namespace vgpu::test
