#include "vgpu/image/elf-file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vgpu::image {

MappedFile::MappedFile(const char* path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  struct stat status;
  void* bytes = MAP_FAILED;
  bool ordinary = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  if (ordinary) bytes = mmap(nullptr, status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (bytes != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(bytes), static_cast<size_t>(status.st_size)};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace vgpu::image
