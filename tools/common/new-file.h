// A file that gets its name when it is completely written: nobody sees it before, and a killed process leaves nothing behind.
#pragma once

#include <kj/io.h>

#include <string>

namespace vgpu {

class NewFile {
 public:
  // Throws kj::Exception if the file exists, or if none can be made there.
  explicit NewFile(const std::string& path);
  ~NewFile() noexcept;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int fd() const { return file; }
  // Syncs the file to disk, and gives it its name.
  void publish();

 private:
  [[noreturn]] void refuse(int error) const;

  const std::string path, folder;
  std::string unfinished;  // its temporary name, on a file system that has no unnamed files
  kj::AutoCloseFd file;
};

}  // namespace vgpu
