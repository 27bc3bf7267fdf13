#include "tools/vgpud/target-folder.h"

#include <sys/stat.h>

#include "tools/common/descriptor.h"
#include "vgpu/base/fail.h"

namespace vgpu::daemon {
namespace {

void requireDirectory(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode))
    fail("cannot use " + path + " for a snapshot: it is not a directory");
}

}  // namespace

kj::Promise<kj::AutoCloseFd> TargetFolder::open(std::string path) {
  auto work = files.run([target = target, path = std::move(path)] {
    requireDirectory(path);
    target->emplace(path);
  });
  opened = work.fork();
  return opened.addBranch().then([this] { return duplicate((*target)->fd()); });
}

kj::Promise<void> TargetFolder::end(bool keeps) {
  return opened.addBranch().catch_([](kj::Exception&&) {}).then([this, keeps] {
    return files.run([target = target, keeps] {
      if (*target && keeps) (*target)->keep();
      target->reset();
    });
  });
}

}  // namespace vgpu::daemon
