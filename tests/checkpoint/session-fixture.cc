#include "session-fixture.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <utility>

#include "stub/worker/image-store.h"
#include "vgpu/api/effects.h"
#include "vgpu/api/handle.h"
#include "vgpu/wire/image-digest.h"

namespace vgpu::test {

namespace {

// A slot serves one unfinished call at a time: a late reply to an earlier call would overwrite the awaited sequence number with a smaller
// one.
constexpr uint16_t slotIndex = 5, otherSlotIndex = 6;
constexpr uint32_t noteSlab = 61;
constexpr const char* image = R"(
.version 8.0
.target sm_75
.address_size 64

.visible .global .align 4 .u32 total;
.visible .global .align 4 .u32 seen;

.visible .entry add(.param .u64 p, .param .u32 v)
{
  .reg .b64 %a, %t;
  .reg .b32 %v, %old;
  ld.param.u64 %a, [p];
  ld.param.u32 %v, [v];
  atom.global.add.u32 %old, [%a], %v;
  mov.u64 %t, total;
  atom.global.add.u32 %old, [%t], %v;
  ret;
}
)";

std::optional<stub::ImageStore> openStore(const std::string& folder) {
  std::string problem;
  if (folder.empty()) return std::nullopt;
  auto store = stub::ImageStore::open(folder, 64 * MiB, problem);
  KJ_REQUIRE(store.has_value(), problem.c_str());
  return store;
}

MemoryFile share(const MemoryFile& file) { return MemoryFile::adopt(dup(file.fd()), file.bytes(), file.bytes()); }

// What the child process wrote to the pipe before it ended.
std::string told(int from) {
  std::string text;
  char buffer[4096];
  for (ssize_t count; (count = read(from, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(count));
  return text;
}

RecordedFrame range(RecordedFrame frame, uint64_t address, uint64_t bytes) {
  frame.address = address;
  frame.bytes = bytes;
  return frame;
}

RecordedFrame lease() {
  return range(makeFrame<api::Cuda::LeaseParams>(0, api::Method::lease, 0,
                                                 [](auto p) {
                                                   p.setAddress(made::arena);
                                                   p.setBytes(made::leaseBytes);
                                                 }),
               made::arena, made::leaseBytes);
}

RecordedFrame fill(uint64_t address, uint32_t value, uint64_t bytes) {
  return makeFrame<api::Cuda::FillParams>(0, api::Method::fill, 0, [&](auto p) {
    p.setDestination(address);
    p.setPitch(bytes);
    p.setValue(value);
    p.setElementBytes(1);
    p.setWidth(bytes);
    p.setHeight(1);
  });
}

RecordedFrame moduleVariable(uint64_t variable, const char* name) {
  return makeFrame<api::Cuda::ModuleVariableParams>(0, api::Method::moduleVariable, 0, [&](auto p) {
    p.setVariable(variable);
    p.setModule(made::module);
    p.setName(name);
  });
}

RecordedFrame eventRecord() {
  return makeFrame<api::Cuda::EventRecordParams>(0, api::Method::eventRecord, 0, [&](auto p) {
    p.setEvent(made::event);
    p.setLine(9);
  });
}

}  // namespace

std::span<const std::byte> madeImage() { return std::as_bytes(std::span(image, strlen(image) + 1)); }

// Device of the module that the image is for.
static uint8_t deviceOf(uint64_t blob) { return static_cast<uint8_t>(handleDevice(blob)); }

RecordedFrame blobFind(uint64_t blob, std::span<const uint8_t> digest, uint64_t totalBytes) {
  return makeFrame<api::Cuda::BlobFindParams>(0, api::Method::blobFind, deviceOf(blob), [&](auto p) {
    p.setBlob(blob);
    p.setDigest(kj::arrayPtr(digest.data(), digest.size()));
    p.setTotalBytes(totalBytes);
  });
}

RecordedFrame blobWrite(uint64_t blob, uint64_t totalBytes, uint64_t offset, uint32_t bytes) {
  return makeFrame<api::Cuda::BlobWriteParams>(0, api::Method::blobWrite, deviceOf(blob), [&](auto p) {
    p.setBlob(blob);
    p.setTotalBytes(totalBytes);
    p.setOffset(offset);
    p.setSlab(0);
    p.setBytes(bytes);
  });
}
RecordedFrame blobWrite(uint64_t blob, uint64_t totalBytes) {
  return blobWrite(blob, totalBytes, 0, static_cast<uint32_t>(totalBytes));
}

void bringImage(TestSession& session, uint64_t blob, std::span<const std::byte> image) {
  bool asksStore = session.segment().header().storesImages != 0;
  auto digest = digestOf(image);
  session.require(blobFind(blob, std::span(digest).first(asksStore ? digest.size() : 0), image.size()));
  if (session.saysFound()) return;
  std::memcpy(session.segment().slab(0), image.data(), image.size());
  session.post(blobWrite(blob, image.size()));
}

RecordedFrame add(uint64_t p, uint32_t v, uint64_t stream) {
  return makeFrame<api::Cuda::LaunchKernelParams>(0, api::Method::launchKernel, 0, [&](auto params) {
    params.setFunction(made::addFunction);
    params.setStream(stream);
    params.setGridX(1), params.setGridY(1), params.setGridZ(1);
    params.setBlockX(1), params.setBlockY(1), params.setBlockZ(1);
    auto bytes = params.initParameters(12);
    std::memcpy(bytes.begin(), &p, 8);
    std::memcpy(bytes.begin() + 8, &v, 4);
  });
}

RecordedFrame synchronize() {
  return makeFrame<api::Cuda::CtxSynchronizeParams>(0, api::Method::ctxSynchronize, 0, [](auto) {});
}

TestSession::TestSession()
    : segmentFile(Segment::create()),
      arenaFile(MemoryFile::create("vgpu-test-arena", hostArenaBytes)),
      mapped(std::make_unique<Segment>(segmentFile)),
      counterMemory(MemoryFile::create("vgpu-test-counters", sizeof(ImageCounters))),
      counters(new (counterMemory.data()) ImageCounters{}) {
  std::filesystem::create_directory(scratch.path + "/list");
}

std::string TestSession::inWorker(const Body& body, const std::string& settings, const Adapt& adapt) {
  int pipes[2];
  KJ_SYSCALL(pipe(pipes));
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    setenv("VGPU_EMULATED", settings.c_str(), 1);
    auto caught = kj::runCatchingExceptions([&] {
      static stub::Driver driver = stub::Driver::load(VGPU_EMULATOR);
      if (adapt) adapt(driver);
      auto store = openStore(imageStore);
      stub::Worker worker(driver, {store ? &*store : nullptr, new (counters) ImageCounters{}}, -1, FoldMode::AUTO, nullptr,
                          libraries);
      worker.attach(share(segmentFile), share(arenaFile));
      body(worker);
    });
    KJ_IF_MAYBE (exception, caught) {
      auto text = exception->getDescription();
      if (write(pipes[1], text.begin(), text.size()) < 0) _exit(3);
    }
    _exit(0);
  }
  close(pipes[1]);
  std::string text = told(pipes[0]);
  close(pipes[0]);
  int status = 0;
  KJ_SYSCALL(waitpid(child, &status, 0));
  KJ_REQUIRE(status == 0, "the worker's process ended badly", status);
  return text;
}

// As a program does before its first use of a device.
void TestSession::openRing(uint8_t device) {
  if (device == 0 || !opened.insert(device).second) return;
  require(makeFrame<api::Cuda::OpenRingParams>(0, api::Method::openRing, 0, [&](auto p) { p.setDevice(device); }));
}

void TestSession::post(RecordedFrame frame) {
  auto& info = api::infoOf(frame.method);
  bool isPosted = info.route == api::Route::POST;
  KJ_REQUIRE(isPosted, "the test waits for no reply of this call", info.name);
  openRing(frame.device);
  send(std::move(frame), 0);  // the slot is ignored
}

int32_t TestSession::call(RecordedFrame frame) { return await(ask(std::move(frame), slotIndex), slotIndex); }

void TestSession::begin(RecordedFrame frame) {
  KJ_REQUIRE(!begun, "its slot has a call without a reply already");
  begun = ask(std::move(frame), otherSlotIndex);
}

bool TestSession::isAnswered() const { return mapped->slot(otherSlotIndex).done.load() >= begun.value(); }

int32_t TestSession::finish() { return await(*std::exchange(begun, std::nullopt), otherSlotIndex); }

// Sends a frame and returns its position.
uint64_t TestSession::send(RecordedFrame frame, uint16_t slot) {
  static std::atomic<bool> never{false};
  RingWriter writer(*mapped, frame.device);
  auto place = *writer.reserve(frame.words.size(), never);
  std::memcpy(place.body(), frame.words.begin(), frame.words.asBytes().size());
  writer.publish(place, frame.method, slot);
  frame.position = place.position;
  frame.number = ++numbered;
  if (api::infoOf(frame.method).replay == api::Replay::BUILD) recorded.push_back(std::move(frame));
  return place.position;
}

// Sends a frame whose reply goes to the slot, and returns its sequence number.
uint64_t TestSession::ask(RecordedFrame frame, uint16_t slotOfCall) {
  openRing(frame.device);
  Slot& slot = mapped->slot(slotOfCall);
  slot.result = CUDA_SUCCESS;  // a completion by the GPU writes no result
  slot.done = 0;               // sequence numbers of different rings cannot be compared
  return send(std::move(frame), slotOfCall) + 1;
}

int32_t TestSession::await(uint64_t sequence, uint16_t slotOfCall) {
  Slot& slot = mapped->slot(slotOfCall);
  while (slot.done.load() < sequence) {
    for (auto& fault : mapped->header().fault)
      if (fault.load() != 0) return fault.load();
    usleep(50);
  }
  return slot.result;
}

void TestSession::require(RecordedFrame frame) {
  auto method = api::infoOf(frame.method).name;
  int32_t result = call(std::move(frame));
  KJ_REQUIRE(result == 0, "a call of the test's program failed", method, result);
}

void TestSession::commit() {
  auto list = ObjectList::open(scratch.path + "/list");
  for (auto& frame : recorded) list->apply(std::move(frame));
  recorded.clear();
  RingCut executed;
  for (unsigned device = 0; device < maxDevices; ++device) executed[device] = mapped->ring(device).tail.load();
  list->commit(executed);
}

uint32_t TestSession::readWord(uint64_t address) {
  require(copy3dBack(api::Place::slab(60), api::Place::address(address), 4));
  uint32_t word;
  std::memcpy(&word, mapped->slab(60), 4);
  return word;
}

bool TestSession::saysMissing() {
  auto words = kj::arrayPtr(reinterpret_cast<const capnp::word*>(reply()), replyBytes / sizeof(capnp::word));
  return api::FrameReader<api::Cuda::ModuleLoadResults>(words).getMissing();
}

// The first word of results follows the root pointer.
const std::byte* TestSession::reply() const { return mapped->reply(slotIndex); }
bool TestSession::firstResult() { return reply()[8] != std::byte{0}; }

std::vector<std::byte> TestSession::program() const {
  std::byte* slabs = mapped->base() + SegmentLayout::slabs;
  return {slabs, mapped->base() + SegmentLayout::rings + 2 * ringBytes};
}

void buildAndStop(TestSession& session, stub::Worker& worker) {
  using namespace made;
  worker.proceed();
  bringImage(session, 1, madeImage());
  session.require(moduleLoad(0, module, 1));
  session.require(moduleFunction(0, addFunction, module, "add"));
  session.require(moduleVariable(totalVariable, "total"));
  // The program remembers the variable's address.
  std::memcpy(session.segment().slab(noteSlab), session.segment().reply(slotIndex) + 8, sizeof(uint64_t));
  session.require(moduleVariable(seenVariable, "seen"));
  session.require(lease());
  session.post(memAlloc(0, counters, 256));
  session.post(memAlloc(0, large, largeBytes));
  session.post(memAlloc(0, gone, 256));
  session.post(
      makeFrame<api::Cuda::StreamCreateParams>(0, api::Method::streamCreate, 0, [](auto p) { p.setPhStream(stream); }));
  session.post(
      makeFrame<api::Cuda::EventCreateParams>(0, api::Method::eventCreate, 0, [](auto p) { p.setPhEvent(event); }));
  session.post(fill(counters, 0, 256));
  session.post(fill(gone, 0, 256));
  session.post(fill(large, 0, largeBytes));
  session.post(fill(large + 5 * MiB, 0x5a, 3 * MiB));
  session.post(add(counters, 5));
  session.post(eventRecord());
  session.require(synchronize());
  session.commit();
  worker.quiesce();

  // The pending calls.
  session.post(add(counters, 7, stream));
  std::memset(session.segment().slab(2), 0x33, 64);
  session.segment().slabState(2).busy = 1;
  session.post(copy3d(api::Place::address(large + 64), api::Place::slab(2), 64));
  session.post(makeFrame<api::Cuda::StreamDestroyParams>(0, api::Method::streamDestroy, 0,
                                                         [](auto p) { p.setHStream(stream); }));
  session.post(memFree(0, gone));
  session.commit();
}

void requireFinished(TestSession& session) {
  using namespace made;
  session.require(synchronize());
  int32_t deferred = session.segment().header().deferred[0].load();
  KJ_REQUIRE(deferred == 0, "a posted call failed", deferred);
  uint32_t counter = session.readWord(counters);
  KJ_REQUIRE(counter == 12, counter);
  uint64_t totalAddress;
  std::memcpy(&totalAddress, session.segment().slab(noteSlab), sizeof totalAddress);
  uint32_t total = session.readWord(totalAddress);
  KJ_REQUIRE(total == 12, total);
  uint32_t words[] = {session.readWord(large), session.readWord(large + 64), session.readWord(large + 5 * MiB),
                      session.readWord(large + 8 * MiB - 4), session.readWord(large + 8 * MiB)};
  KJ_REQUIRE(
      words[0] == 0 && words[1] == 0x33333333 && words[2] == 0x5a5a5a5a && words[3] == 0x5a5a5a5a && words[4] == 0,
      words[0], words[1], words[2], words[3], words[4]);
  KJ_REQUIRE(session.segment().slabState(2).busy == 0, "the pending copy did not give its slab back");
  // The variable still exists, and so do the function and the event; objects that pending calls destroyed are gone.
  session.post(add(counters, 1));
  session.require(synchronize());
  counter = session.readWord(counters);
  KJ_REQUIRE(counter == 13, counter);
  float milliseconds = -1;
  session.require(makeFrame<api::Cuda::EventElapsedTimeParams>(0, api::Method::eventElapsedTime, 0, [](auto p) {
    p.setStart(event);
    p.setEnd(event);
  }));
  // One word of results, after the root pointer.
  std::memcpy(&milliseconds, session.segment().reply(slotIndex) + 8, sizeof milliseconds);
  KJ_REQUIRE(milliseconds == 0, milliseconds);
  session.post(memAlloc(0, gone, 512));
  session.require(synchronize());
  deferred = session.segment().header().deferred[0].load();
  KJ_REQUIRE(deferred == 0, "the place of freed memory is not free", deferred);
}

SavedSession::SavedSession(const std::function<void(TestSession&, stub::Worker&)>& make) {
  std::string failure = session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    make(session, worker);
    session.commit();
    checkpoint::save(worker, path, session.scratch.path + "/list", someIdentity(), nullptr);
  });
  CHECK(failure == "");
}

std::string SavedSession::restored(const TestSession::Body& then) {
  return session.inWorker([&](stub::Worker& worker) {
    checkpoint::restore(worker, path, nullptr);
    then(worker);
  });
}

snapshot::Identity someIdentity() { return {"5e55", "test", "/bin/test", 4242, 1000, "vgpu-test"}; }

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

}  // namespace vgpu::test
