// A folder for CRIU's log and statistics while it runs, under the folder for temporary files. Gone with the object; what a process has
// left that was killed, the next one removes: whoever has a folder holds a lock on it (flock), which ends with the process.
#pragma once

#include <kj/io.h>

#include <string>

namespace vgpu::process {

class WorkFolder {
 public:
  // `base`: where, with the folders of others. Throws kj::Exception if none can be made.
  explicit WorkFolder(const std::string& base = temporary());
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::string& path() const { return where; }

 private:
  static std::string temporary();

  std::string where;
  kj::AutoCloseFd lock;
};

}  // namespace vgpu::process
