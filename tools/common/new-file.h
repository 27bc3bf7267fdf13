// A file that gets its name when all of it is written: until then nobody sees it, and whoever is killed leaves nothing.
#pragma once

#include <kj/io.h>

#include <string>

namespace vgpu {

class NewFile {
 public:
  // Throws kj::Exception if there is a file of that name, or none can be made there.
  explicit NewFile(const std::string& path);
  ~NewFile() noexcept;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int fd() const { return file; }
  // On disk, and under its name.
  void publish();

 private:
  [[noreturn]] void refuse(int error) const;

  const std::string path, folder;
  std::string unfinished;  // its name until then, on a file system that has no files without one
  kj::AutoCloseFd file;
};

}  // namespace vgpu
