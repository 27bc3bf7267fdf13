// vgpud, the daemon of a node: admits programs, keeps workers, suspends and resumes sessions. One event loop, one thread.
#include <fmt/format.h>
#include <kj/async-unix.h>
#include <kj/debug.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "tools/common/file-work.h"
#include "tools/common/installation.h"
#include "tools/common/known-nodes.h"
#include "tools/common/node-address.h"
#include "tools/common/private-daemon.h"
#include "tools/common/reason.h"
#include "tools/common/snapshot-store.h"
#include "tools/common/spawn.h"
#include "tools/vgpud/acceptor.h"
#include "tools/vgpud/guests.h"
#include "tools/vgpud/image-cache.h"
#include "tools/vgpud/log.h"
#include "tools/vgpud/node-server.h"
#include "tools/vgpud/options.h"
#include "tools/vgpud/remote-listener.h"
#include "tools/vgpud/run-directory.h"
#include "tools/vgpud/sessions.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/base/sizes.h"
#include "vgpu/store/file-system.h"

namespace vgpu::daemon {
namespace {

constexpr uint64_t registeredInOneSecond = 4 * GiB;  // a driver's minimum rate for pinned memory; measured: 20 GiB/s (docs/facts.md)
constexpr unsigned mostRecycleSeconds = 24 * 60 * 60;
// The time for sessions to leave. systemd kills a service that has not ended after 90 s (DefaultTimeoutStopSec).
constexpr unsigned defaultEvacuateSeconds = 60;
constexpr const char* description =
    "The daemon of a node: gives programs a virtual GPU, suspends and resumes them.\n"
    "Runs in the foreground until SIGTERM or SIGINT.";
constexpr const char* examples =
    "Examples:\n"
    "  vgpud --run-dir /run/user/1000/vgpu\n"
    "  vgpud --run-dir /tmp/node-a --device emulated:2     two emulated devices, no GPU needed\n"
    "Environment:\n"
    "  VGPU_EMULATED   settings of the emulated device, such as devices=4,memory=8GiB,architecture=90\n";

// Each connection takes a descriptor: raises the limit as far as the system allows.
void raiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

kj::Promise<void> stopSignal(kj::UnixEventPort& port) {
  auto terminate = port.onSignal(SIGTERM), interrupt = port.onSignal(SIGINT);
  return terminate.exclusiveJoin(kj::mv(interrupt)).then([](siginfo_t&& info) {
    spdlog::info("ending on signal {}", info.si_signo);
  });
}

// The first kind of worker that works, or nothing if `stop` resolves first. The emulated device never replaces a real one without a
// message.
kj::Maybe<kj::Own<WorkerPool>> startPool(kj::AsyncIoContext& io, Processes& processes, const DaemonOptions& options,
                                         const PinnedPool& pinned, kj::ForkedPromise<void>& stop) {
  std::vector<WorkerKind> kinds = workerKinds(options.device);
  for (WorkerKind& kind : kinds) {
    kind.arguments = {"--fold", options.fold};
    if (!options.libraries.empty())
      kind.arguments.insert(kind.arguments.end(), {"--libraries", std::filesystem::absolute(options.libraries)});
    if (!pinned.exists()) continue;
    kind.arguments.insert(kind.arguments.end(), {"--pinned", std::to_string(pinned.bytes())});
    kind.pinnedMemory = pinned.fd();
    kind.startLimit += pinned.bytes() / registeredInOneSecond * kj::SECONDS;
  }
  useImageCache(kinds, options);
  for (size_t i = 0;; ++i) {
    auto pool = kj::heap<WorkerPool>(io, processes, kinds[i], options.warm, options.recycleSeconds * kj::SECONDS);
    bool isStopped = false;
    auto caught = kj::runCatchingExceptions([&] {
      auto begun = pool->begin().then([] { return false; });
      isStopped = begun.exclusiveJoin(stop.addBranch().then([] { return true; })).wait(io.waitScope);
    });
    KJ_IF_MAYBE (exception, caught) {
      pool->close();
      if (i + 1 == kinds.size()) kj::throwFatalException(kj::mv(*exception));
      spdlog::info("no {} device is used: {}", kinds[i].label, reasonOf(*exception));
    } else if (isStopped) {
      pool->close();
      return nullptr;
    } else {
      return kj::mv(pool);
    }
  }
}

// Reports problems of the store at the start instead of at the first suspend. On a thread, because a disk may hang. The user of vgpuctl may
// choose another store.
kj::Promise<void> lookAtStore(FileWork& files) {
  return files
      .run([] {
        const std::string folder = snapshotStore();
        std::string problem = unfitPlace(folder);
        if (!problem.empty()) fail(fmt::format("the store of snapshots {} cannot be used: {}", folder, problem));
      })
      .catch_([](kj::Exception&& exception) { spdlog::warn("{}", reasonOf(exception)); });
}

class LogFailures final : public kj::TaskSet::ErrorHandler {
  void taskFailed(kj::Exception&& exception) override {
    warnLimited("connection", 0, "a connection ended: " + reasonOf(exception));
  }
};

void announce(const RunDirectory& directory, const WorkerPool& pool, const std::vector<RemoteListener>& listeners) {
  for (auto& listener : listeners) std::printf("vgpud: listens on %s\n", listener.address().c_str());
  size_t count = pool.devices().size();
  std::printf("vgpud: ready on %s (%s, %zu device%s: %s)\n", directory.controlSocket().c_str(),
              pool.workerKind().label.c_str(), count, count == 1 ? "" : "s", pool.devices().front().name.c_str());
  std::fflush(stdout);
}

// How many seconds sessions may take to leave: 0 if that was not requested, and no other nodes are known. The sessions of a private daemon
// end with it.
unsigned evacuateSecondsOf(const DaemonOptions& options) {
  if (options.evacuateSeconds) return *options.evacuateSeconds;
  bool hasNodes = false;
  auto caught = kj::runCatchingExceptions([&] { hasNodes = !options.isPrivate && !knownNodes().empty(); });
  KJ_IF_MAYBE (exception, caught) spdlog::warn("sessions will not move to other nodes when this vgpud ends: {}", reasonOf(*exception));
  return hasNodes ? defaultEvacuateSeconds : 0;
}

// Runs vgpuctl for it, as a person would; meanwhile the daemon goes on, until it is told to end once more.
void evacuate(kj::AsyncIoContext& io, Processes& processes, const RunDirectory& directory, unsigned seconds) {
  SpawnRequest request;
  request.executable = binaryFile("vgpuctl");
  request.arguments = {"vgpuctl", "--node", directory.controlSocket(), "evacuate"};
  request.deathSignal = SIGTERM;
  request.ownGroup = true;
  pid_t tool = spawn(request);
  auto child = processes.adopt(tool);
  spdlog::info("sessions have {} s to move to other nodes", seconds);
  auto late = io.provider->getTimer().afterDelay(seconds * kj::SECONDS).then([tool, seconds] {
    kill(tool, SIGTERM);
    return "took longer than " + std::to_string(seconds) + " s";
  });
  auto stopped = stopSignal(io.unixEventPort).then([tool]() -> std::string {
    kill(tool, SIGTERM);
    return "was interrupted";
  });
  auto ended = kj::mv(child.ended).exclusiveJoin(kj::mv(late)).exclusiveJoin(kj::mv(stopped));
  spdlog::info("the evacuation {}", ended.wait(io.waitScope));
}

void serveUntil(kj::Promise<void> stop, kj::AsyncIoContext& io, Processes& processes, WorkerPool& pool, RunDirectory& directory,
                PinnedPool& pinned, const DaemonOptions& options, std::vector<RemoteListener>& listeners, Guests& guests) {
  Sessions sessions(io, processes, pool, directory, pinned, options.keepsSuspended);
  sessions.guests = &guests;
  LogFailures handler;
  kj::TaskSet tasks(handler);
  tasks.add(acceptAll(io, directory.sessionSocket(), [&](kj::AutoCloseFd socket) { sessions.admit(kj::mv(socket)); }));
  tasks.add(acceptAll(io, directory.controlSocket(),
                      [&](kj::AutoCloseFd socket) { tasks.add(serveNode(sessions, kj::mv(socket))); }));
  tasks.add(acceptAll(io, directory.streamSocket(),
                      [&](kj::AutoCloseFd socket) { tasks.add(sessions.arrivals.admit(kj::mv(socket))); }));
  for (auto& listener : listeners) tasks.add(listener.serve(io, processes, directory.path()));
  tasks.add(guests.serve(pool.devices().size(), pool.workerKind().label == "emulated", io.provider->getTimer(), processes,
                         directory.path()));
  announce(directory, pool, listeners);
  if (!options.isPrivate) tasks.add(lookAtStore(sessions.files));
  stop.wait(io.waitScope);
  sessions.stopAdmitting();
  const unsigned seconds = sessions.all().size() == 0 ? 0 : evacuateSecondsOf(options);
  if (seconds != 0) evacuate(io, processes, directory, seconds);
  guests.close();
  sessions.close(stopSignal(io.unixEventPort)).wait(io.waitScope);
}

std::vector<RemoteListener> listenersOf(const DaemonOptions& options) {
  std::vector<RemoteListener> listeners;
  for (const std::string& address : options.listens) {
    auto endpoint = parseEndpoint(address);
    if (!endpoint) fail(std::string("--listen takes ") + endpointForms + ", not \"" + address + "\"");
    listeners.emplace_back(*endpoint, options.allowsPlain);
  }
  return listeners;
}

int serve(const DaemonOptions& options) {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  if (options.keepsSuspended && options.pinnedBytes == 0)
    fail("--keep-suspended is for sessions that are suspended to pinned memory: name its size with --pinned");
  RunDirectory directory(options.runDirectory);
  auto stop = stopSignal(io.unixEventPort).fork();
  Processes processes(io.unixEventPort);
  std::vector<RemoteListener> listeners = listenersOf(options);
  Guests guests(options.guests);
  PinnedPool pinned(options.pinnedBytes);
  auto started = startPool(io, processes, options, pinned, stop);
  KJ_IF_MAYBE (pool, started) serveUntil(stop.addBranch(), io, processes, **pool, directory, pinned, options, listeners, guests);
  return 0;
}

// For scripts that interrupt every step: each line has a name, a process and a description, separated by tabs.
void listFaultPoints() {
  for (auto& point : faultPoints) {
    std::printf("%.*s\t%.*s\t%.*s\n", static_cast<int>(point.name.size()), point.name.data(),
                static_cast<int>(point.process.size()), point.process.data(), static_cast<int>(point.when.size()),
                point.when.data());
  }
}

int run(int argc, char** argv) {
  DaemonOptions options;
  CLI::App app{description, "vgpud"};
  app.footer(examples);
  app.set_version_flag("--version", std::string("vgpud ") + productVersion);
  app.add_option("--run-dir", options.runDirectory, "the directory of sockets and state (default: one of the user's own)");
  app.add_option("--device", options.device, "auto, cuda, emulated or emulated:N (N devices)")->capture_default_str();
  app.add_option("--image-cache", options.imageCache,
                 "folder for the module images of programs and the code that the driver compiles from them, or none\n"
                 "(default: vgpu in $XDG_CACHE_HOME or ~/.cache, for root /var/cache)");
  app.add_option("--libraries", options.libraries,
                 "folder of cuBLAS and the other libraries that programs use; without it workers search for them as any program does, and "
                 "use none on the emulated device")
      ->envname("VGPU_LIBRARIES");
  app.add_option("--image-cache-size", options.imageCacheBytes,
                 "how much of either it holds, such as 500MiB (default: 4GiB)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber);
  app.add_option("--warm", options.warm, "how many workers wait ready for programs; `vgpuctl ps --workers` shows what each costs")
      ->capture_default_str()
      ->check(CLI::Range(0u, WorkerPool::mostWaiting));
  app.add_option("--pinned", options.pinnedBytes,
                 "pinned memory for snapshots, such as 64GiB: `vgpuctl suspend --to memory` and --background (default: none).\n"
                 "It is allocated at the start; each worker takes 51 ms per GiB longer to start")
      ->transform(CLI::AsSizeValue(false));
  app.add_flag("--keep-suspended", options.keepsSuspended,
               "a session suspended to pinned memory stays on its GPU too, until another program of this vgpud needs the GPU memory:\n"
               "resumed before that, it goes on at once. Programs outside this vgpud do not get that GPU memory");
  app.add_option("--fold", options.fold,
                 "whether queued launches are combined into graphs: auto, off or always;\n"
                 "VGPU_FOLD in a program's environment sets it for that program")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "off", "always"}));
  app.add_option("--recycle", options.recycleSeconds,
                 "how many seconds a worker beyond those of --warm waits for another program when its own has ended\n"
                 "(0: it ends with its program)")
      ->capture_default_str()
      ->check(CLI::Range(0u, mostRecycleSeconds));
  app.add_option("--log-level", options.logLevel, "trace, debug, info, warn, error or off")
      ->capture_default_str()
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));
  app.add_option("--listen", options.listens,
                 "also serve programs of other hosts at this address: tls:ADDRESS:PORT (keys: vgpuctl keys), tcp:127.0.0.1:PORT,\n"
                 "vsock:any:PORT (port 0: any free port); may be given several times");
  app.add_flag("--allow-plain", options.allowsPlain,
               "let --listen take tcp: and vsock: addresses that others reach, although these neither encrypt nor ask who connects");
  app.add_option(
      "--guest", options.guests,
      "also serve the programs of a virtual machine: NAME=FILE or NAME=FILE,SIZE. FILE is the memory of its ivshmem device,\n"
      "created if it does not exist (SIZE: a power of two, default 2GiB); may be given several times");
  app.add_option("--evacuate", options.evacuateSeconds,
                 "at SIGTERM, for this many seconds, sessions move to the nodes that `vgpuctl nodes` lists; a session that has\n"
                 "not left by then ends, as all do with 0. Default: 60 if there are such nodes")
      ->check(CLI::Range(0u, 86400u));
  app.add_flag("--list-fault-points", options.listsFaultPoints, "print the points at which a test can interrupt, and exit");
  app.add_flag("--private", options.isPrivate, "remove the run directory at the end")->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.listsFaultPoints) {
    listFaultPoints();
    return 0;
  }
  startLog(options.logLevel);
  if (options.runDirectory.empty()) options.runDirectory = defaultRunDirectory();
  raiseDescriptorLimit();
  LogToSpdlog log;
  int code = exitCodeOf("vgpud", [&] { return serve(options); });
  if (!options.isPrivate) return code;
  for (const std::string& kept : removePrivateDirectory(options.runDirectory)) {
    std::fprintf(stderr, "vgpud: a suspended session goes on elsewhere; its state stays in %s\n", kept.c_str());
  }
  return code;
}

}  // namespace
}  // namespace vgpu::daemon

int main(int argc, char** argv) {
  vgpu::rememberIgnoredSignals();
  kj::UnixEventPort::captureSignal(SIGTERM);
  kj::UnixEventPort::captureSignal(SIGINT);
  return vgpu::daemon::run(argc, argv);
}
