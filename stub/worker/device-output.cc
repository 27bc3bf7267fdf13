#include "stub/worker/device-output.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace vgpu::stub {

namespace {

int64_t endOf(int file) {
  struct stat status;
  KJ_SYSCALL(fstat(file, &status));
  return status.st_size;
}

}  // namespace

int DeviceOutput::redirect() {
  int made;
  KJ_SYSCALL(made = memfd_create("vgpu-device-output", MFD_CLOEXEC));
  KJ_SYSCALL(dup2(made, STDOUT_FILENO));
  return made;
}

DeviceOutput::DeviceOutput(int file) : file(file) {
  if (file < 0) return;
  std::fflush(stdout);
  collected = endOf(file);
}

void DeviceOutput::collect() {
  if (file < 0) return;
  std::lock_guard lock(mutex);
  std::fflush(stdout);
  int64_t end = endOf(file);
  if (end <= collected) return;
  std::string piece(static_cast<size_t>(end - collected), 0);
  ssize_t got;
  KJ_SYSCALL(got = pread(file, piece.data(), piece.size(), collected));
  collected += got;
  // Frees the pages. By punching a hole and not by truncation, because a thread of the driver may be writing.
  KJ_SYSCALL(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, collected));
  add(std::string_view(piece).substr(0, static_cast<size_t>(got)));
}

void DeviceOutput::add(std::string_view more) {
  text.erase(0, taken);
  taken = 0;
  text += more;
  if (text.size() > mostBytes) text.erase(0, text.size() - mostBytes);
}

std::string DeviceOutput::take(size_t mostBytes) {
  std::lock_guard lock(mutex);
  std::string next(rest().substr(0, mostBytes));
  taken += next.size();
  if (taken != text.size()) return next;
  text = {};
  taken = 0;
  return next;
}

}  // namespace vgpu::stub
