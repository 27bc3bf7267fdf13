// suspend --native: for a program that runs on a GPU without vgpu. NVIDIA's driver moves what its processes have on their GPUs into the
// processes (checkpoint/process/driver-checkpoint.h), and CRIU saves them. What is preserved depends on NVIDIA, and the command says so.
//
// Before the snapshot is complete, any error lets all processes go on. If this process is killed, a resume from the folder or another
// suspend to it does that (native-held.h).
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "checkpoint/process/criu.h"
#include "checkpoint/process/driver-checkpoint.h"
#include "checkpoint/process/survey.h"
#include "tools/common/reason.h"
#include "tools/vgpuctl/await-program.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/interruption.h"
#include "tools/vgpuctl/native-held.h"
#include "tools/vgpuctl/native-list.h"
#include "tools/vgpuctl/operation.h"
#include "tools/vgpuctl/program-tree.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"

namespace vgpu::ctl {
namespace {

namespace fs = std::filesystem;
using snapshot::ProcessPart;

pid_t processNamed(const std::string& text) {
  constexpr std::string_view prefix = "pid:";
  const std::string_view digits =
      text.starts_with(prefix) ? std::string_view(text).substr(prefix.size()) : std::string_view(text);
  pid_t pid = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  if (error != std::errc() || end != digits.data() + digits.size() || pid <= 0)
    fail(fmt::format("\"{}\" is not a process id, which --native needs", text));
  if (process::hasEnded(pid)) fail(fmt::format("there is no process {}", pid));
  return pid;
}

class NativeSave {
 public:
  // Throws kj::Exception if one of the processes cannot be saved; nothing has been changed then.
  NativeSave(const process::DriverCheckpoint& driver, pid_t root, std::string directory)
      : driver(driver),
        root(root),
        users(process::usersOf(driver, process::treeOf(root))),
        held(heldOf(root, users)),
        directory(std::move(directory)) {
    if (auto stopped = process::stoppedIn(root); !stopped.empty())
      fail(fmt::format("{} is stopped, and NVIDIA's driver needs it running: let it go on first (kill -CONT {})",
                       process::named(stopped.front()), stopped.front()));
  }

  // Makes the folder. Throws kj::Exception if it cannot; nothing has been changed then.
  void begin();
  // If it throws kj::Exception, call undo().
  ProcessPart save(const process::Criu& criu, unsigned timeoutSeconds, const Interruption& interruption);
  // Continues all processes and removes everything in the folder. Throws kj::Exception with the reason `error`.
  [[noreturn]] void undo(const kj::Exception& error);
  // The snapshot contains the processes: ends them.
  void end(const ProcessPart& part);

  const process::DriverCheckpoint& driver;
  const pid_t root;
  const std::vector<pid_t> users;

 private:
  const NativeHeld held;
  const std::string directory;
  kj::AutoCloseFd lock;
};

void NativeSave::begin() {
  if (mkdir(directory.c_str(), 0700) != 0) fail(fmt::format("cannot make the folder {}: {}", directory, strerror(errno)));
  KJ_IF_MAYBE (failure, kj::runCatchingExceptions([&] {
                 writeNativeHeld(directory, held);
                 lock = lockNativeHeld(directory, true);
               })) {
    std::error_code ignored;
    fs::remove_all(directory, ignored);
    kj::throwFatalException(kj::mv(*failure));
  }
  faultPoint("native.begun");
}

ProcessPart NativeSave::save(const process::Criu& criu, unsigned timeoutSeconds, const Interruption& interruption) {
  for (pid_t user : users) {
    driver.take(user, timeoutSeconds);
    faultPoint("native.taken");
    interruption.check();
  }
  // Checked now, when they have none of the driver's files open any more.
  if (auto obstacles = process::obstaclesOf(root, criu.savesNetworkSockets()); !obstacles.empty())
    fail(fmt::format("process {} cannot be saved: {}", root, fmt::join(obstacles, "; ")));
  const std::string folder = snapshot::processFolderOf(directory);
  if (mkdir(folder.c_str(), 0700) != 0) fail(fmt::format("cannot make the folder {}: {}", folder, strerror(errno)));
  criu.dump(root, folder, process::isShellJob(root));
  interruption.check();
  ProcessPart part = process::describe(root);
  part.criu = criu.version();
  part.images = snapshot::sumImages(folder);
  faultPoint("native.saved");
  interruption.check();
  writeNativeList(directory, {driver.version(), users, snapshot::writeProcessList(directory, part)});
  return part;
}

void NativeSave::undo(const kj::Exception& error) {
  const std::string why = reasonOf(error);
  if (std::string problem = releaseHeld(driver, held); !problem.empty())
    fail(fmt::format("{}. And the program does not go on: {}. `vgpuctl resume {}` tries again to let it go on", why, problem, directory));
  std::error_code ignored;
  fs::remove_all(directory, ignored);
  fail(fmt::format("{}. The program goes on", why));
}

void NativeSave::end(const ProcessPart& part) {
  faultPoint("native.named");
  tellParentSaved(root);
  endProcesses(processesOf(part));
  faultPoint("native.ended");
  removeNativeHeld(directory);
}

void print(const NativeSave& save, const ProcessPart& part, const std::string& directory, bool asJson) {
  uint64_t bytes = 0;
  for (auto& [name, sum] : part.images) bytes += sum.bytes;
  if (asJson) {
    printJson({{"pid", part.pid},
               {"processes", part.processes.size()},
               {"users", save.users},
               {"imageBytes", bytes},
               {"driver", save.driver.version()},
               {"directory", directory}});
    return;
  }
  fmt::print(
      "process {} is suspended to {}: {} processes, of which {} had memory of a GPU, {}; all have ended\n"
      "Its GPU state was saved by NVIDIA's driver (CUDA {}.{}): the guarantees are NVIDIA's, not vgpu's\n",
      part.pid, directory, part.processes.size(), save.users.size(), humanBytes(bytes), save.driver.version() / 1000,
      save.driver.version() % 1000 / 10);
}

}  // namespace

int suspendNative(const SuspendOptions& options) {
  const pid_t root = processNamed(options.session);
  const std::string directory = fs::absolute(options.directory);
  auto criu = process::Criu::find();
  auto driver = process::DriverCheckpoint::open();
  putRightNative(directory);
  NativeSave save(driver, root, directory);
  Interruption interruption;
  save.begin();
  ProcessPart part;
  KJ_IF_MAYBE (failure, kj::runCatchingExceptions([&] { part = save.save(criu, options.timeoutSeconds, interruption); }))
    save.undo(*failure);
  save.end(part);
  print(save, part, directory, options.json);
  return 0;
}

}  // namespace vgpu::ctl
