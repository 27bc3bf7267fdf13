// Where the resumes of several sessions meet before any of them begins to run: all do, or none.
//
// Event loop only.
#pragma once

#include <kj/async.h>
#include <kj/exception.h>
#include <kj/refcount.h>

namespace vgpu::daemon {

class CommitBarrier final : public kj::Refcounted {
 public:
  // Of so many resumes.
  explicit CommitBarrier(size_t count) : missing(count), all(kj::newPromiseAndFulfiller<void>()), open(all.promise.fork()) {}
  KJ_DISALLOW_COPY(CommitBarrier);

  // Of a resume that could begin. Resolves when all can; rejects if one of them has failed.
  kj::Promise<void> arrive() {
    if (--missing == 0) all.fulfiller->fulfill();
    return open.addBranch();
  }
  // Of one that has failed, perhaps after it had arrived.
  void fail(const kj::Exception& exception) { all.fulfiller->reject(kj::cp(exception)); }

 private:
  size_t missing;
  kj::PromiseFulfillerPair<void> all;
  kj::ForkedPromise<void> open;
};

}  // namespace vgpu::daemon
