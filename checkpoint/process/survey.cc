#include "checkpoint/process/survey.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "checkpoint/process/network-sockets.h"
#include "vgpu/base/fail.h"

namespace vgpu::process {

namespace {

using snapshot::ForeignPipe;
using snapshot::MappedFile;
using snapshot::ProcessPart;
namespace fs = std::filesystem;

std::string folderOf(pid_t pid) { return fmt::format("/proc/{}", pid); }

// The numeric entries of a folder in /proc/PID; empty if the process has ended.
std::vector<int> numbersIn(pid_t pid, const char* name) {
  std::vector<int> numbers;
  std::error_code error;
  std::string folder = folderOf(pid) + "/" + name;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    numbers.push_back(std::stoi(entry->path().filename()));
  if (error && !hasEnded(pid)) fail(fmt::format("cannot look into {}: {}", folder, error.message()));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

struct Descriptor {
  pid_t pid;
  int number;
  std::string target;  // "pipe:[123]", "/dev/null"
  int flags = 0;
  int mount = 0;  // the mount's id in mountinfo
};

std::vector<Descriptor> descriptorsOf(pid_t pid) {
  std::vector<Descriptor> all;
  for (int number : numbersIn(pid, "fd")) {
    std::error_code error;
    auto target = fs::read_symlink(fmt::format("{}/fd/{}", folderOf(pid), number), error);
    if (error) continue;  // it was closed meanwhile
    Descriptor one{pid, number, target.string()};
    std::ifstream info(fmt::format("{}/fdinfo/{}", folderOf(pid), number));
    std::string word;
    while (info >> word)
      if (word == "flags:")
        info >> std::oct >> one.flags >> std::dec;
      else if (word == "mnt_id:")
        info >> one.mount;
    all.push_back(std::move(one));
  }
  return all;
}

// The descriptors of all processes of a tree.
std::vector<Descriptor> descriptorsOf(const std::vector<pid_t>& tree) {
  std::vector<Descriptor> all;
  for (pid_t pid : tree)
    for (auto& one : descriptorsOf(pid)) all.push_back(std::move(one));
  return all;
}

// The descriptors of pipes of which the tree has only one end.
std::vector<Descriptor> foreignPipesIn(const std::vector<Descriptor>& descriptors) {
  std::map<std::string, unsigned> ends;  // bit 0: read end, bit 1: write end
  auto endOf = [](const Descriptor& one) {
    return (one.flags & O_ACCMODE) == O_RDONLY ? 1u : (one.flags & O_ACCMODE) == O_WRONLY ? 2u : 3u;
  };
  for (auto& one : descriptors)
    if (one.target.starts_with("pipe:")) ends[one.target] |= endOf(one);
  std::vector<Descriptor> foreign;
  for (auto& one : descriptors)
    if (one.target.starts_with("pipe:") && ends[one.target] != 3) foreign.push_back(one);
  return foreign;
}

// Which of these pipes a process outside of the tree has open, as far as we can see. The other end of all other pipes is closed, and stays
// closed.
std::set<std::string> openElsewhere(const std::vector<pid_t>& tree, const std::vector<Descriptor>& pipes) {
  std::set<std::string> wanted, found;
  for (auto& pipe : pipes) wanted.insert(pipe.target);
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != name.npos || std::ranges::find(tree, std::stoi(name)) != tree.end()) continue;
    std::error_code unseen;
    for (fs::directory_iterator one(entry->path() / "fd", unseen), last; !unseen && one != last; one.increment(unseen)) {
      std::error_code closed;
      if (auto target = fs::read_symlink(*one, closed).string(); wanted.contains(target)) found.insert(target);
    }
  }
  return found;
}

// The pipes that the restoring process's own streams will replace: standard streams of any process, each once, however many descriptors
// refer to it.
std::vector<ForeignPipe> standardPipesOf(const std::vector<Descriptor>& foreign) {
  std::vector<ForeignPipe> pipes;
  for (auto& one : foreign)
    if (one.number <= STDERR_FILENO && std::ranges::find(pipes, one.target, &ForeignPipe::name) == pipes.end())
      pipes.push_back({one.number, one.target});
  return pipes;
}

// The kinds of descriptors, by their names in /proc, that CRIU can save.
constexpr const char* savedKinds[] = {"/dev/null",
                                      "/dev/zero",
                                      "/dev/full",
                                      "/dev/random",
                                      "/dev/urandom",
                                      "/dev/tty",
                                      "/dev/pts/",
                                      "/dev/ptmx",
                                      "/dev/shm/",
                                      "anon_inode:[eventfd]",
                                      "anon_inode:[eventpoll]",
                                      "anon_inode:[signalfd]",
                                      "anon_inode:[timerfd]",
                                      "anon_inode:inotify",
                                      "anon_inode:[fanotify]",
                                      "anon_inode:[pidfd]"};

bool isSaved(const std::string& target) {
  if (!target.starts_with("/dev/") && !target.starts_with("anon_inode:")) return true;
  return std::any_of(std::begin(savedKinds), std::end(savedKinds), [&](const char* kind) { return target.starts_with(kind); });
}

// "socket:[123]"
std::optional<std::string> findSocketInode(const std::string& target) {
  constexpr std::string_view before = "socket:[";
  if (!target.starts_with(before)) return std::nullopt;
  return target.substr(before.size(), target.size() - before.size() - 1);
}

// The mounts that the process sees. A file that it received from outside of its mount namespace lies on none of them.
std::set<int> mountsOf(pid_t pid) {
  std::set<int> mounts;
  std::ifstream file(folderOf(pid) + "/mountinfo");
  for (std::string line; std::getline(file, line);) mounts.insert(std::stoi(line));
  return mounts;
}

struct Area {
  std::string path;
  bool isShared = false;
};

// The files that the process has mapped, each once; marked as shared if any mapping is shared.
std::vector<Area> filesMappedBy(pid_t pid) {
  std::map<std::string, bool> files;
  std::ifstream maps(folderOf(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    size_t path = line.find('/');
    std::istringstream fields(line);
    std::string range, access;
    fields >> range >> access;
    bool isShared = access.size() == 4 && access[3] == 's';
    if (path != line.npos) files[line.substr(path)] |= isShared;
  }
  std::vector<Area> areas;
  for (auto& [path, isShared] : files) areas.push_back({path, isShared});
  return areas;
}

// Anonymous memory that /proc shows as a file; the last two are the ring of io_setup(), and huge pages without a file.
bool isMemory(const std::string& path) {
  return path.starts_with("/memfd:") || path == "/dev/zero (deleted)" || path == "/[aio] (deleted)" ||
         path == "/anon_hugepage (deleted)";
}
bool isRemoved(const std::string& path) { return path.ends_with(" (deleted)"); }

// Whether it is a path in a mounted file system, by which CRIU opens it again; terminals are handled differently.
bool isFile(const std::string& target) {
  return target.starts_with('/') && !isMemory(target) && !target.starts_with("/dev/pts/") && target != "/dev/tty";
}

// 0: not traced.
pid_t tracerOf(pid_t pid) {
  std::ifstream status(folderOf(pid) + "/status");
  std::string word;
  for (pid_t tracer = 0; status >> word;)
    if (word == "TracerPid:" && status >> tracer) return tracer;
  return 0;
}

// A zombie whose parent has ended too exists until init reaps it.
void awaitBurial(pid_t pid) {
  constexpr unsigned mostMilliseconds = 20000, stepMilliseconds = 20;
  for (unsigned waited = 0; waited < mostMilliseconds && factsOf(pid).state == 'Z'; waited += stepMilliseconds)
    usleep(stepMilliseconds * 1000);
}

}  // namespace

std::vector<std::string> obstaclesOf(pid_t root, bool savesNetworkSockets) {
  const auto tree = treeOf(root);
  std::vector<std::string> found;
  auto add = [&](pid_t pid, const std::string& text) {
    found.push_back(tree.size() == 1 ? text : fmt::format("{}: {}", named(pid), text));
  };
  const auto all = descriptorsOf(tree), foreign = foreignPipesIn(all);
  const auto fine = standardPipesOf(foreign);
  std::map<pid_t, std::set<int>> mounts;
  for (pid_t pid : tree) mounts[pid] = mountsOf(pid);
  for (pid_t pid : tree) {
    if (pid == getpid()) add(pid, "it is this vgpuctl itself: call it from outside of the program");
    if (hasOwnIds(pid)) add(pid, "it is in a pid namespace of its own, as the processes of a clone are");
    if (!hasOwnIds(pid) && factsOf(pid).session == 0 && !hasEnded(pid))
      add(pid, "the leader of its session (setsid) is outside of its pid namespace: start it with `vgpuctl run`, or setsid(1)");
    if (pid_t tracer = tracerOf(pid)) add(pid, "it is traced by " + named(tracer));
    for (auto& area : filesMappedBy(pid))
      if (isRemoved(area.path) && !isMemory(area.path))
        add(pid, "it has mapped a file that has since been removed or replaced: " + area.path);
  }
  for (auto& one : all) {
    if (auto& seen = mounts.at(one.pid); isFile(one.target) && !seen.empty() && !seen.contains(one.mount))
      add(one.pid, fmt::format("its descriptor {}, {}, is from another mount namespace", one.number, one.target));
    if (!isSaved(one.target)) add(one.pid, fmt::format("its descriptor {} is {}", one.number, one.target));
    if (auto inode = findSocketInode(one.target))
      if (auto why = socketObstacle(one.pid, *inode, savesNetworkSockets); !why.empty())
        add(one.pid, fmt::format("its descriptor {} {}", one.number, why));
  }
  std::vector<Descriptor> halves;
  for (auto& one : foreign)
    if (std::ranges::find(fine, one.target, &ForeignPipe::name) == fine.end()) halves.push_back(one);
  const auto elsewhere = halves.empty() ? std::set<std::string>() : openElsewhere(tree, halves);
  for (auto& one : halves)
    if (elsewhere.contains(one.target))
      add(one.pid, fmt::format("its descriptor {} is an end of a pipe whose other end belongs to another process", one.number));
  return found;
}

ProcessPart describe(pid_t root) {
  const auto tree = treeOf(root);
  ProcessPart part;
  part.pid = root;
  part.shellJob = isShellJob(root);
  std::map<std::string, bool> files;  // whether any mapping is shared
  for (pid_t pid : tree) {
    if (!hasEnded(pid)) part.processes.push_back({pid, factsOf(pid).name});
    for (int thread : numbersIn(pid, "task")) part.threads.push_back(thread);
    for (auto& area : filesMappedBy(pid))
      if (!isMemory(area.path)) files[area.path] |= area.isShared;
  }
  for (auto& [path, isShared] : files) part.mapped.push_back(snapshot::describeMapped(path, isShared));
  part.pipes = standardPipesOf(foreignPipesIn(descriptorsOf(tree)));
  return part;
}

std::vector<int> stoppedIn(pid_t root) {
  std::vector<int> stopped;
  for (pid_t pid : treeOf(root))
    if (factsOf(pid).state == 'T') stopped.push_back(pid);
  return stopped;
}

bool isShellJob(pid_t root) {
  auto tree = treeOf(root);
  return std::ranges::find(tree, factsOf(root).session) == tree.end();
}

void requireSameFiles(const ProcessPart& part) {
  for (auto& wanted : part.mapped) {
    if (access(wanted.path.c_str(), F_OK) != 0)
      fail(fmt::format("the process has mapped {}, which is not on this machine: {}. Put the same file there", wanted.path,
                       strerror(errno)));
    MappedFile found = snapshot::describeMapped(wanted.path, wanted.identity.empty());
    if (found == wanted) continue;
    auto shown = [](const MappedFile& file) {
      return fmt::format("{} bytes{}{}", file.bytes, file.identity.empty() ? "" : ", ", file.identity);
    };
    fail(fmt::format(
        "the process has mapped {}, and the file here is a different one: {} here, {} when it was saved. Put the same file there",
        wanted.path, shown(found), shown(wanted)));
  }
}

// Checks the process id first, because people know it; thread ids may be smaller if ids wrapped around at pid_max.
void requireFreeIds(const ProcessPart& part) {
  std::vector<int> ids{part.pid};
  ids.insert(ids.end(), part.threads.begin(), part.threads.end());
  for (int id : ids) {
    awaitBurial(id);
    if (access(folderOf(id).c_str(), F_OK) != 0) continue;
    bool isDead = factsOf(id).state == 'Z';  // its id becomes free when its parent reaps it
    fail(fmt::format("{} {} of the saved process is in use: {} has it{}. Resume the snapshot when that process has ended, or on another "
                     "machine",
                     id == part.pid ? "process id" : "thread id", id, named(id), isDead ? ", which is dead" : ""));
  }
}

}  // namespace vgpu::process
