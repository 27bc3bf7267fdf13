// A folder for CRIU's log and statistics while it runs, in the folder for temporary files. Removed with the object; the folder of a killed
// process is removed by the next process. Each process locks its folder (flock), and the lock ends with the process.
#pragma once

#include <kj/io.h>

#include <string>

namespace vgpu::process {

class WorkFolder {
 public:
  // `base`: the parent folder, shared with others. Throws kj::Exception if no folder can be made.
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
