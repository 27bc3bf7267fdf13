#include "tools/vgpud/worker-process.h"

#include <fmt/format.h>
#include <kj/debug.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <sstream>
#include <string_view>

#include "tools/common/descriptor.h"
#include "tools/common/installation.h"
#include "tools/common/spawn.h"
#include "vgpu/base/fail.h"

namespace vgpu::daemon {
namespace {

constexpr int workerSocket = 3;    // the descriptor on which vgpu-worker expects its end of the connection
constexpr int workerCounters = 4;  // that of the memory for its counters
constexpr int workerPinned = 5;    // that of the node's pinned memory

// Grace period for a worker that does not reply at all, after the time for its GPU is over.
constexpr unsigned graceSeconds = 10;

// The only variables of our environment that a worker gets. They exclude what `vgpuctl run` sets for programs (above all LD_PRELOAD), and
// how a driver loads code: with eager loading it loads a library into every existing context, and places variables differently. They also
// exclude that a GPU fault ends the process with a core dump.
constexpr const char* passedPrefixes[] = {
    "PATH=", "HOME=",         "LANG=",         "LC_",           "TMPDIR=",       "CUDA_",
    "VGPU_", "ASAN_OPTIONS=", "LSAN_OPTIONS=", "TSAN_OPTIONS=", "UBSAN_OPTIONS="};
constexpr const char* keptBack[] = {
    "VGPU_NODE=",          "VGPU_SESSION_NAME=",          "VGPU_EMULATED=",
    "VGPU_FOLD=",          "CUDA_MODULE_LOADING=",        "CUDA_COREDUMP_",
    "CUDA_ENABLE_COREDUMP", "CUDA_ENABLE_USER_TRIGGERED_COREDUMP"};

bool startsWithAny(std::string_view text, std::span<const char* const> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const char* prefix) { return text.starts_with(prefix); });
}

// The driver may be reachable only through LD_LIBRARY_PATH; but the folder with our libcuda.so.1, which is in it if a program under vgpu
// starts a daemon, must be removed.
std::string searchPath() {
  const char* value = std::getenv("LD_LIBRARY_PATH");
  std::string own = libraryFile("vgpu-worker"), kept, part;
  own.resize(own.rfind('/'));
  std::istringstream parts(value == nullptr ? "" : value);
  while (std::getline(parts, part, ':')) {
    if (part != own && !part.empty()) kept += (kept.empty() ? "" : ":") + part;
  }
  return kept;
}

std::vector<std::string> workerEnvironment(const WorkerKind& kind) {
  std::vector<std::string> environment = kind.environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (startsWithAny(*entry, passedPrefixes) && !startsWithAny(*entry, keptBack)) environment.emplace_back(*entry);
  }
  // The driver copies a module's code into malloc() memory: many MiB, touched for the first time.
  environment.emplace_back("GLIBC_TUNABLES=glibc.malloc.hugetlb=1");
  if (std::string path = searchPath(); !path.empty()) environment.push_back("LD_LIBRARY_PATH=" + path);
  return environment;
}

}  // namespace

struct WorkerProcess::Connection {
  kj::Own<kj::AsyncCapabilityStream> stream;
  capnp::TwoPartyClient rpc;

  explicit Connection(kj::Own<kj::AsyncCapabilityStream> owned) : stream(kj::mv(owned)), rpc(*stream, descriptorsPerMessage) {}
};

WorkerProcess::WorkerProcess(kj::AsyncIoContext& io, Processes& processes, const WorkerKind& kind) {
  int ends[2];
  KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  kj::AutoCloseFd ours(ends[0]), theirs(ends[1]);
  SpawnRequest request;
  request.executable = libraryFile("vgpu-worker");
  request.arguments = {"vgpu-worker", "--device", kind.device};
  request.arguments.insert(request.arguments.end(), kind.arguments.begin(), kind.arguments.end());
  request.environment = workerEnvironment(kind);
  MemoryFile memory = MemoryFile::create("vgpu-counters", sizeof(WorkerCounters));
  counters = Mapping(memory);
  request.inherits = {{theirs.get(), workerSocket}, {memory.fd(), workerCounters}};
  if (kind.pinnedMemory >= 0) request.inherits.push_back({kind.pinnedMemory, workerPinned});
  request.deathSignal = SIGKILL;
  request.ownGroup = true;
  request.fixedAddresses = true;
  process = spawn(request);
  auto child = processes.adopt(process);
  handle = kj::mv(child.handle);
  exit = child.ended.fork();
  connection = kj::heap<Connection>(io.lowLevelProvider->wrapUnixSocketFd(kj::mv(ours)));
  client = connection->rpc.bootstrap().castAs<control::Worker>();
}

WorkerProcess::~WorkerProcess() noexcept(false) { kill(); }

const WorkerCounters& WorkerProcess::counted() const {
  return *static_cast<const WorkerCounters*>(static_cast<const void*>(counters.data()));
}

kj::Promise<void> WorkerProcess::quiesce(kj::Timer& timer, control::Progress::Client progress, unsigned timeoutSeconds) {
  auto request = client.quiesceRequest();
  request.setTimeoutSeconds(timeoutSeconds);
  request.setProgress(kj::mv(progress));
  const unsigned seconds = timeoutSeconds + graceSeconds;
  auto late = timer.afterDelay(seconds * kj::SECONDS).then([process = process, seconds] {
    fail(fmt::format("the vgpu-worker (pid {}) did not answer in {} s. The program goes on", process, seconds));
  });
  return orExit(request.send().ignoreResult()).exclusiveJoin(kj::mv(late));
}

kj::Promise<void> WorkerProcess::goOn() {
  auto gone = client.proceedRequest().send().ignoreResult();
  return gone.catch_([exit = exited()](kj::Exception&&) mutable { return exit.ignoreResult(); });
}

void WorkerProcess::kill() { syscall(SYS_pidfd_send_signal, handle.get(), SIGKILL, nullptr, 0); }

kj::Promise<void> WorkerProcess::stop() {
  kill();
  return exited().ignoreResult();
}

}  // namespace vgpu::daemon
