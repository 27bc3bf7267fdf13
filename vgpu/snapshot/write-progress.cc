#include "vgpu/snapshot/write-progress.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace vgpu::snapshot {

namespace {

constexpr size_t lineBytes = 64;  // padded with blanks, so that each line overwrites the previous one completely

}  // namespace

std::optional<WriteProgress> findWriteProgress(const std::string& directory) {
  kj::AutoCloseFd file(open((directory + "/" + writingFile).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0 || flock(file, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return std::nullopt;
  char line[lineBytes + 1] = {};
  WriteProgress found;
  bool isRead = pread(file, line, lineBytes, 0) > 0 &&
                std::sscanf(line, "%lu %lu %lf", &found.doneBytes, &found.allBytes, &found.seconds) == 3;
  return isRead ? std::optional(found) : std::nullopt;
}

WriteProgressFile::WriteProgressFile(const std::string& directory)
    : path(directory + "/" + writingFile), file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)) {
  if (file.get() >= 0) flock(file, LOCK_EX);
}

WriteProgressFile::~WriteProgressFile() noexcept {
  if (file.get() >= 0) unlink(path.c_str());
}

void WriteProgressFile::report(uint64_t doneBytes, uint64_t allBytes) {
  double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::string line = fmt::format("{} {} {:.3f}", doneBytes, allBytes, seconds);
  line.resize(lineBytes, ' ');
  if (file.get() >= 0) [[maybe_unused]]
    ssize_t written = pwrite(file, line.data(), line.size(), 0);
}

}  // namespace vgpu::snapshot
