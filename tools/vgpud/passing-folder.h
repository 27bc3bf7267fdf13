// A state directory of the daemon's own, for a session that moves from one node to another. It is made off the event loop, and its
// requester may be gone before it exists: take() returns it even then.
//
// Used in the event loop.
#pragma once

#include <kj/async.h>

#include <string>

#include "tools/common/file-work.h"
#include "tools/vgpud/state-directory.h"

namespace vgpu::daemon {

class PassingFolder {
 public:
  // Makes IN/NAME for process `owner`. Call it once. Rejects if that fails; the promise may be dropped.
  kj::Promise<void> make(FileWork& files, std::string in, std::string name, pid_t owner) {
    auto work = files.run([in = std::move(in), name = std::move(name), owner] { return StateDirectory::make(in, name, owner); }).fork();
    auto there = work.addBranch().then([this](StateDirectory::Shared&& directory) { where = directory->path(); });
    made = kj::mv(work);
    return there;
  }
  // Valid after make().
  const std::string& path() const { return where; }

  // The directory, once it has been made, for the caller to remove; nullptr if there is none. Call it once.
  kj::Promise<StateDirectory::Shared> take() {
    KJ_IF_MAYBE (work, made) return work->addBranch().catch_([](kj::Exception&&) { return StateDirectory::Shared(); });
    return StateDirectory::Shared();
  }

 private:
  kj::Maybe<kj::ForkedPromise<StateDirectory::Shared>> made;
  std::string where;
};

}  // namespace vgpu::daemon
