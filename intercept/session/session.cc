#include "intercept/session/session.h"

#include <kj/debug.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "intercept/session/call.h"
#include "intercept/session/cancellation.h"
#include "intercept/session/copy/thread-pool.h"
#include "vgpu/wire/fold-mode.h"
#include "vgpu/wire/handover.h"

namespace vgpu::client {

namespace {

std::atomic<Session*> theSession{nullptr};
std::mutex opening;

bool forked = false;

std::string nodeFromEnvironment() {
  const char* node = getenv("VGPU_NODE");
  KJ_REQUIRE(node != nullptr && *node != 0,
             "this program uses vgpu's libraries without a vgpud; start it with `vgpuctl run -- PROGRAM`");
  return node;
}

std::string programPath() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

OpenRequest openRequest() {
  const char *name = getenv("VGPU_SESSION_NAME"), *visible = getenv("CUDA_VISIBLE_DEVICES");
  std::string program = programPath();
  return {.node = nodeFromEnvironment(),
          .name = name != nullptr && *name != 0 ? name : std::filesystem::path(program).filename().string(),
          .program = program,
          .visible = visible == nullptr ? std::nullopt : std::optional<std::string>(visible)};
}

}  // namespace

// A child must not use the parent's ring, connections and threads. A socket left open in the child would outlive the parent's, and a daemon
// could connect to it although no process serves it.
void Session::forgetInChild() {
  Session* session = theSession.exchange(nullptr, std::memory_order_relaxed);
  if (session == nullptr) return;
  session->control->leave();
  forked = session->isInitialized.load(std::memory_order_relaxed);
  if (forked) return;
  // The child may open a session of its own, whose host arena has the same addresses.
  session->hostArena = Mapping();
  Thread::forget();
}

bool Session::isForked() { return forked; }

Session* Session::find() { return theSession.load(std::memory_order_acquire); }

Session& Session::open() {
  if (Session* session = find()) return *session;
  CancellationOff whileOpening;
  std::lock_guard lock(opening);
  if (Session* session = find()) return *session;
  OpenRequest request = openRequest();
  std::unique_ptr<Session> session(new Session(Control::open(request)));
  session->visible = request.visible.value_or("");
  session->start();
  noteCoreDumps();
  pthread_atfork(nullptr, nullptr, forgetInChild);
  theSession.store(session.get(), std::memory_order_release);
  return *session.release();
}

Session::Session(std::unique_ptr<Control> opened)
    : control(std::move(opened)),
      segment(control->segment()),
      memory(segment, completionWords, control->hostArena(), control->segment()),
      slabs(segment),
      copyThreads(std::make_unique<CopyThreadPool>()) {
  if (const MemoryFile& file = control->hostArena(); file.bytes() != 0) {  // if it is empty, host memory is not shared
    KJ_REQUIRE(file.bytes() == hostArenaBytes, "vgpud sent a host arena of the wrong size", file.bytes());
    hostArena = Mapping(file, fromWire<void*>(hostArenaBase));
  }
  for (unsigned device = 0; device < maxDevices; ++device) {
    rings.push_back(std::make_unique<RingWriter>(segment, device));
    deviceReplies.emplace_back(functionChanges[device]);
    hostFunctions.emplace_back(segment, completionWords, lost, device);
    registeredReads.emplace_back(segment, completionWords, lost, device);
  }
}

void Session::openRing(Thread& thread, unsigned device) {
  CancellationOff untilOpen;
  std::lock_guard lock(ringOpening);
  if (isRingOpen(device)) return;
  segment.populateRing(device);
  Call<api::Cuda::OpenRingParams> frame(thread.on(0), api::Method::openRing);
  frame->setDevice(device);
  CUresult result = frame.call();
  KJ_REQUIRE(result == CUDA_SUCCESS || lost, "the worker does not serve its device", device, static_cast<int>(result));
  openRings.fetch_or(1u << device, std::memory_order_release);
}

RingCut Session::executed() const {
  RingCut cut;
  for (unsigned device = 0; device < maxDevices; ++device) cut[device] = segment.ring(device).tail.load();
  return cut;
}

uint64_t Session::claimCounted(unsigned device, uint64_t words, uint64_t& number) {
  std::lock_guard lock(numbering);
  number = ++lastNumber;
  return ring(device).claim(words);
}

// Reads the launch settings from the environment. An unknown folding mode is ignored.
void Session::readEnvironment() {
  const char *fold = getenv("VGPU_FOLD"), *blocking = getenv("CUDA_LAUNCH_BLOCKING");
  launchesBlock = blocking != nullptr && atoi(blocking) != 0;
  auto mode = foldModeOf(fold == nullptr ? "" : fold);
  if (mode) segment.header().fold.store(static_cast<uint32_t>(*mode), std::memory_order_relaxed);
}

CUmoduleLoadingMode Session::loadingMode() {
  const char* said = getenv("CUDA_MODULE_LOADING");
  return said != nullptr && std::string_view(said) == "EAGER" ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
}

void Session::start() {
  readEnvironment();
  recorder = std::make_unique<Recorder>(control->directory(), [this] { return executed(); });
  control->serve(*this);  // before the first wait: the worker's death must end that wait
  describeDevices();
  for (unsigned device = 0; device < devices.size(); ++device) contexts.add(device);
}

void Session::describeDevices() {
  Thread& thread = Thread::current(*this);
  for (unsigned device = 0, count = 1; device < count; ++device) {
    Call<api::Cuda::DescribeParams> frame(thread, api::Method::describe);
    frame->setDevice(device);
    CUresult result = frame.call();
    KJ_REQUIRE(result == CUDA_SUCCESS, "the worker cannot describe its device", device, static_cast<int>(result));
    auto reported = frame.results<api::Cuda::DescribeResults>();
    count = std::min<unsigned>(reported.getCount(), maxDevices);
    driverVersion = reported.getDriverVersion();
    DeviceInfo info;
    info.name = reported.getName().cStr();
    info.pciBusId = reported.getPciBusId().cStr();
    info.uuid = reported.getUuid<CUuuid>();
    info.totalBytes = reported.getTotalBytes();
    auto attributes = reported.getAttributes();
    for (size_t i = 0; i < attributes.size(); ++i) info.attributes.push_back(attributes[i]);
    auto peers = reported.getPeers();
    info.peers.resize(peers.size() / DeviceInfo::peerFacts);
    for (size_t i = 0; i < info.peers.size() * DeviceInfo::peerFacts; ++i)
      info.peers[i / DeviceInfo::peerFacts][i % DeviceInfo::peerFacts] = peers[i];
    info.leastPriority = reported.getLeastPriority();
    info.greatestPriority = reported.getGreatestPriority();
    info.limitToSession(memory.canMapHost());
    devices.push_back(std::move(info));
  }
  // Only if all devices are peers can they access managed memory in place. Else it is pinned memory, without prefetching
  // (docs/managed-memory.md).
  if (!areAllPeers(devices) || !programHasDeviceArenas)
    for (auto& info : devices) info.attributes[CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS] = 0;
}

CUresult Session::fault(unsigned device) const {
  return static_cast<CUresult>(segment.header().fault[device].load(std::memory_order_relaxed));
}

CUresult Session::faultOf(unsigned device, uint64_t sequence) const {
  if (CUresult now = fault(device)) return now;
  auto& last = resets[device];
  if (last.sequence.load(std::memory_order_acquire) <= sequence) return CUDA_SUCCESS;
  return static_cast<CUresult>(last.fault.load(std::memory_order_relaxed));
}

CUresult Session::takeError(unsigned device) {
  if (lost.load(std::memory_order_relaxed)) return lossResult();
  if (CUresult sticky = fault(device)) return sticky;
  auto& deferred = segment.header().deferred[device];
  if (deferred.load(std::memory_order_relaxed) == CUDA_SUCCESS) return CUDA_SUCCESS;
  return static_cast<CUresult>(deferred.exchange(CUDA_SUCCESS));
}

bool Session::renewWorker() {
  CancellationOff untilThere;
  std::string why = control->renew();
  if (!why.empty()) fprintf(stderr, "vgpu: the program gets no new GPU after a fault: %s\n", why.c_str());
  return why.empty();
}

std::string Session::comeApart(const std::function<bool()>& givesUp) { 
  return memory.comeApart(*this, managed, hostArena, givesUp);
}

void Session::leaveHost() { managed.leaveHost(); }

uint64_t Session::closeGate(const std::function<bool()>& givesUp) {
  constexpr const char* taken = "the suspend was cancelled";
  memory.completeFrees(*this, givesUp);
  KJ_REQUIRE(gate.close(givesUp), taken);
  KJ_ON_SCOPE_FAILURE(gate.open());
  KJ_REQUIRE(recorder->flush(givesUp), taken);
  return segment.ring(0).head.load();
}

void Session::openGate() { gate.open(); }

// No call is inside the gate, so no reply of the old driver can be stored as the new driver's.
uint64_t Session::accept() {
  for (auto& changes : functionChanges) ++changes;
  return handovers = acceptHandover(segment.header().handover, handovers);
}

bool Session::withdraw(uint64_t handover) { return withdrawHandover(segment.header().handover, handover); }

void Session::leaveFiles() { recorder->leave(); }

void Session::enterFiles(const std::string& directory) {
  AsymmetricFence::registerAgain();
  recorder->enter(directory);
}

void Session::lose(const std::string& why) {
  if (lost.load()) return;
  // Printed first, because a program may exit as soon as a call fails; and not through stdio's stderr, whose lock the calling thread may
  // hold.
  dprintf(STDERR_FILENO, "vgpu: this program has lost its GPU: %s\n", why.c_str());
  lost = true;
  gate.open();
}

}  // namespace vgpu::client
