// A barrier for an operation on several sessions: all of them go on from it, or none does. For resumes: before any program runs; for
// suspends: before any session is saved, and before any program is suspended.
//
// Event loop only.
#pragma once

#include <kj/async.h>
#include <kj/exception.h>
#include <kj/function.h>
#include <kj/refcount.h>

namespace vgpu::daemon {

class CommitBarrier final : public kj::Refcounted {
 public:
  // For `count` sessions. `last` is called when all have arrived, before any of them goes on; if it throws, none goes on.
  explicit CommitBarrier(
      size_t count, kj::Function<void()> last = [] {})
      : missing(count), last(kj::mv(last)), all(kj::newPromiseAndFulfiller<void>()), open(all.promise.fork()) {}
  KJ_DISALLOW_COPY(CommitBarrier);

  // A session has arrived. Resolves when all have; rejects if one of them has failed.
  kj::Promise<void> arrive() {
    if (--missing == 0)
      all.fulfiller->rejectIfThrows([this] {
        last();
        all.fulfiller->fulfill();
      });
    return open.addBranch();
  }
  // A session has failed, possibly after it had arrived.
  void fail(const kj::Exception& exception) { all.fulfiller->reject(kj::cp(exception)); }

 private:
  size_t missing;
  kj::Function<void()> last;
  kj::PromiseFulfillerPair<void> all;
  kj::ForkedPromise<void> open;
};

}  // namespace vgpu::daemon
