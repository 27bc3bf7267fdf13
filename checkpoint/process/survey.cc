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
#include <set>
#include <sstream>

#include "vgpu/base/fail.h"

namespace vgpu::process {

namespace {

using snapshot::ForeignPipe;
using snapshot::MappedFile;
using snapshot::ProcessPart;
namespace fs = std::filesystem;

std::string folderOf(pid_t pid) { return fmt::format("/proc/{}", pid); }

std::vector<int> numbersIn(const std::string& folder) {
  std::vector<int> numbers;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    numbers.push_back(std::stoi(entry->path().filename()));
  if (error) fail(fmt::format("cannot look into {}: {}", folder, error.message()));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

struct Descriptor {
  int number;
  std::string target;  // "pipe:[123]", "/dev/null"
  int flags = 0;
  int mount = 0;  // as mountinfo counts
};

std::vector<Descriptor> descriptorsOf(pid_t pid) {
  std::vector<Descriptor> all;
  for (int number : numbersIn(folderOf(pid) + "/fd")) {
    std::error_code error;
    auto target = fs::read_symlink(fmt::format("{}/fd/{}", folderOf(pid), number), error);
    if (error) continue;  // closed meanwhile
    Descriptor one{number, target.string()};
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

// Pipes of which the process has one end only, by its descriptors.
std::vector<ForeignPipe> foreignPipesOf(const std::vector<Descriptor>& descriptors) {
  std::map<std::string, unsigned> ends;  // bit 0: it reads, bit 1: it writes
  auto endOf = [](const Descriptor& one) {
    return (one.flags & O_ACCMODE) == O_RDONLY ? 1u : (one.flags & O_ACCMODE) == O_WRONLY ? 2u : 3u;
  };
  for (auto& one : descriptors)
    if (one.target.starts_with("pipe:")) ends[one.target] |= endOf(one);
  std::vector<ForeignPipe> foreign;
  for (auto& one : descriptors)
    if (one.target.starts_with("pipe:") && ends[one.target] != 3) foreign.push_back({one.number, one.target});
  return foreign;
}

// What CRIU saves of the kinds of descriptors that /proc names so.
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

// A socket of a table of the process's network, by the inode in it: whether it is an established connection.
bool isConnection(pid_t pid, const std::string& target) {
  constexpr const char* established = "01";  // TCP_ESTABLISHED
  std::string inode = target.substr(target.find('[') + 1);
  inode.pop_back();
  for (const char* table : {"tcp", "tcp6"}) {
    std::ifstream file(fmt::format("{}/net/{}", folderOf(pid), table));
    for (std::string line; std::getline(file, line);) {
      std::istringstream fields(line);
      std::vector<std::string> all;
      for (std::string field; fields >> field;) all.push_back(field);
      if (all.size() > 9 && all[9] == inode && all[3] == established) return true;
    }
  }
  return false;
}

// The mounts that the process sees. A file that it got from outside of its mount namespace is of none of them.
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

// The files that the process has mapped, each once; shared, if it is so anywhere.
std::vector<Area> filesMappedBy(pid_t pid) {
  std::map<std::string, bool> files;
  std::ifstream maps(folderOf(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    size_t path = line.find('/');
    std::istringstream fields(line);
    std::string range, access;
    fields >> range >> access;
    bool isShared = access.size() == 4 && access[1] == 'w' && access[3] == 's';
    if (path != line.npos) files[line.substr(path)] |= isShared;
  }
  std::vector<Area> areas;
  for (auto& [path, isShared] : files) areas.push_back({path, isShared});
  return areas;
}

// Memory that /proc shows as a file without a name.
bool isMemory(const std::string& path) { return path.starts_with("/memfd:") || path == "/dev/zero (deleted)"; }
bool isRemoved(const std::string& path) { return path.ends_with(" (deleted)"); }

// With a place in a mounted file system, by which CRIU finds it again; a terminal it finds otherwise.
bool isFile(const std::string& target) {
  return target.starts_with('/') && !isMemory(target) && !target.starts_with("/dev/pts/") && target != "/dev/tty";
}

std::string named(pid_t pid) { return fmt::format("process {} ({})", pid, factsOf(pid).name); }

// A process that has ended, and whose parent has too, is there until init looks after it.
void awaitBurial(pid_t pid) {
  constexpr unsigned mostMilliseconds = 20000, stepMilliseconds = 20;
  for (unsigned waited = 0; waited < mostMilliseconds && factsOf(pid).state == 'Z'; waited += stepMilliseconds)
    usleep(stepMilliseconds * 1000);
}

}  // namespace

ProcessFacts factsOf(pid_t pid) {
  std::ifstream file(folderOf(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  size_t open = text.find('('), close = text.rfind(')');  // the name may hold anything
  ProcessFacts facts;
  if (open == text.npos || close == text.npos) return facts;
  facts.name = text.substr(open + 1, close - open - 1);
  pid_t group;
  std::istringstream(text.substr(close + 1)) >> facts.state >> facts.parent >> group >> facts.session;
  return facts;
}

std::vector<std::string> obstaclesOf(pid_t pid) {
  std::vector<std::string> found;
  for (int thread : numbersIn(folderOf(pid) + "/task")) {
    std::ifstream children(fmt::format("{}/task/{}/children", folderOf(pid), thread));
    for (pid_t child; children >> child;)
      found.push_back(fmt::format("it has a child, {}: only one process can be saved", named(child)));
  }
  if (factsOf(pid).session == 0)
    found.push_back(
        "the leader of its session (setsid) is outside of its pid namespace: start it with `vgpuctl run`, or setsid(1)");
  std::ifstream status(folderOf(pid) + "/status");
  std::string word;
  for (pid_t tracer = 0; status >> word;)
    if (word == "TracerPid:" && status >> tracer && tracer != 0)
      found.push_back(fmt::format("it is traced by {}", named(tracer)));
  auto descriptors = descriptorsOf(pid);
  const auto mounts = mountsOf(pid);
  for (auto& one : descriptors) {
    if (isFile(one.target) && !mounts.contains(one.mount))
      found.push_back(fmt::format("its descriptor {}, {}, is of another mount namespace", one.number, one.target));
    if (!isSaved(one.target)) found.push_back(fmt::format("its descriptor {} is {}", one.number, one.target));
    if (one.target.starts_with("socket:") && isConnection(pid, one.target))
      found.push_back(fmt::format("its descriptor {} is a TCP connection", one.number));
  }
  for (auto& pipe : foreignPipesOf(descriptors))
    if (pipe.descriptor > STDERR_FILENO)
      found.push_back(fmt::format("its descriptor {} is an end of a pipe whose other end is another process's", pipe.descriptor));
  for (auto& area : filesMappedBy(pid))
    if (isRemoved(area.path) && !isMemory(area.path))
      found.push_back(fmt::format("it has mapped a file that has been removed or replaced since: {}", area.path));
  return found;
}

ProcessPart describe(pid_t pid) {
  ProcessPart part;
  part.pid = pid;
  part.threads = numbersIn(folderOf(pid) + "/task");
  part.shellJob = isShellJob(pid);
  for (auto& area : filesMappedBy(pid))
    if (!isMemory(area.path)) part.mapped.push_back(snapshot::describeMapped(area.path, area.isShared));
  for (auto& pipe : foreignPipesOf(descriptorsOf(pid)))
    if (pipe.descriptor <= STDERR_FILENO) part.pipes.push_back(pipe);
  return part;
}

bool isShellJob(pid_t pid) { return factsOf(pid).session != pid; }

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
        "the process has mapped {}, and the file here is another one: {} here, {} when it was saved. Put the same file there",
        wanted.path, shown(found), shown(wanted)));
  }
}

void requireFreeIds(const ProcessPart& part) {
  for (int id : part.threads) {
    awaitBurial(id);
    if (access(folderOf(id).c_str(), F_OK) != 0) continue;
    bool isDead = factsOf(id).state == 'Z';  // its id is free when its parent has asked for its exit code
    fail(fmt::format("{} {} of the saved process is taken: {} has it{}. Resume it when that has ended, or on another machine",
                     id == part.pid ? "process id" : "thread id", id, named(id), isDead ? ", which is dead" : ""));
  }
}

}  // namespace vgpu::process
