// A local file, mapped for reading, as an ELF file. Like elf.h, it throws nothing and needs no initialiser.
#pragma once

#include "vgpu/image/elf.h"

namespace vgpu::image {

class MappedFile {
 public:
  // Has no bytes if the file is not a regular file, is empty or cannot be opened.
  explicit MappedFile(const char* path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  Bytes bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

struct ElfFile : private MappedFile, Elf {
  explicit ElfFile(const char* path) : MappedFile(path), Elf(bytes()) {}
};

}  // namespace vgpu::image
