#include "vgpu/base/private-folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace vgpu {
namespace {

// A link that we or root made is trusted: to replace it, another user would need write access to the folder around it, and could then
// replace a real folder of ours just as well.
bool leadsAstray(const std::string& path, std::string& problem) {
  struct stat status;
  if (lstat(path.c_str(), &status) < 0 || !S_ISLNK(status.st_mode)) return false;
  if (status.st_uid == geteuid() || status.st_uid == 0) return false;
  problem = fmt::format("{} is a link of user {}, not of user {}; name a folder of your own", path, status.st_uid,
                        geteuid());
  return true;
}

}  // namespace

kj::Maybe<kj::AutoCloseFd> openPrivateFolder(const std::string& path, std::string& problem) {
  std::error_code ignored;  // if a parent is missing, mkdir reports it
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  if (mkdir(path.c_str(), 0700) < 0 && errno != EEXIST) {
    problem = fmt::format("{} cannot be made: {}", path, strerror(errno));
    return nullptr;
  }
  if (leadsAstray(path, problem)) return nullptr;
  kj::AutoCloseFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status;
  if (folder.get() < 0 || fstat(folder, &status) < 0) {
    problem = fmt::format("{} cannot be opened: {}", path, strerror(errno));
  } else if (status.st_uid != geteuid()) {
    problem =
        fmt::format("{} belongs to user {}, not to user {}; name a folder of your own", path, status.st_uid, geteuid());
  } else if ((status.st_mode & 022) != 0) {
    problem = fmt::format("{} can be written by others (mode {:03o}); chmod 700 it, or name another folder", path,
                          status.st_mode & 0777);
  } else {
    return kj::mv(folder);
  }
  return nullptr;
}

}  // namespace vgpu
