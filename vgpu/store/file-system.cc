#include "vgpu/store/file-system.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "vgpu/base/private-folder.h"

namespace vgpu {

namespace {

struct NetworkType {
  uint64_t type;
  const char* name;
};
constexpr NetworkType networkTypes[] = {{NFS_SUPER_MAGIC, "NFS"},   {SMB_SUPER_MAGIC, "SMB"},   {CIFS_SUPER_MAGIC, "CIFS"},
                                        {SMB2_SUPER_MAGIC, "SMB"},  {V9FS_MAGIC, "9P"},         {AFS_SUPER_MAGIC, "AFS"},
                                        {CODA_SUPER_MAGIC, "Coda"}, {CEPH_SUPER_MAGIC, "Ceph"}, {OCFS2_SUPER_MAGIC, "OCFS2"},
                                        {0x0bd00bd0, "Lustre"},     {0x47504653, "GPFS"}};

constexpr const char* wanted =
    "A store must be on a local file system with locks, hard links, shared mappings and holes, such as ext4, xfs, "
    "btrfs or tmpfs: name another folder with VGPU_STORE, or a directory for this snapshot with --to";

// `file` must exist and have pages.
const char* failingPart(int file, const std::string& path, const std::string& other) {
  constexpr size_t bytes = 2 * 4096;
  if (ftruncate(file, bytes) != 0) return "files cannot be given a size";
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) return "files cannot be mapped by several processes";
  char seen = 0;
  static_cast<char*>(mapped)[0] = 1;
  bool isCoherent = pread(file, &seen, 1, 0) == 1 && seen == 1;
  munmap(mapped, bytes);
  if (!isCoherent) return "data written through a mapping is not what read() returns";
  if (link(path.c_str(), other.c_str()) != 0) return "files cannot have hard links";
  unlink(other.c_str());
  if (fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) != 0) return "parts of files cannot be freed";
  if (fsync(file) != 0) return "files cannot be synced";
  struct flock byte {
    .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1, .l_pid = 0
  };
  if (fcntl(file, F_OFD_SETLK, &byte) != 0 || flock(file, LOCK_EX | LOCK_NB) != 0) return "files cannot be locked";
  return nullptr;
}

}  // namespace

std::string unfitType(uint64_t type) {
  for (auto& network : networkTypes)
    if (network.type == type)
      return fmt::format(
          "it is on a network file system ({}), where processes of other hosts see neither locks nor mapped pages. {}",
          network.name, wanted);
  return "";
}

std::string unfitFileSystem(const std::string& folder) {
  struct statfs found;
  if (statfs(folder.c_str(), &found) != 0) return fmt::format("inspecting its file system: {}", strerror(errno));
  if (auto problem = unfitType(static_cast<uint32_t>(found.f_type)); !problem.empty()) return problem;
  std::string path = fmt::format("{}/test.{}", folder, getpid()), other = path + ".other";
  kj::AutoCloseFd file(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return fmt::format("making a file there: {}", strerror(errno));
  KJ_DEFER(unlink(path.c_str()));
  errno = 0;
  const char* failing = failingPart(file, path, other);
  if (failing == nullptr || errno == ENOSPC) return "";  // a full disk is reported when something is written
  return fmt::format("its file system cannot hold a store: {} ({}). {}", failing, errno == 0 ? "no error" : strerror(errno),
                     wanted);
}

std::string unfitPlace(const std::string& folder) {
  std::filesystem::path there = folder;
  std::error_code error;
  while (!exists(there, error) && there.has_relative_path()) there = there.parent_path();
  std::string problem;
  if (there == folder && openPrivateFolder(folder, problem) == nullptr) return problem;
  if (access(there.c_str(), W_OK | X_OK) != 0) return fmt::format("{} cannot be written: {}", there.string(), strerror(errno));
  return unfitFileSystem(there);
}

}  // namespace vgpu
