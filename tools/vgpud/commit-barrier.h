// Where what is done with several sessions meets before any of it goes on: all do, or none. Of resumes: before any program runs;
// of suspends: before any session is saved, and before any program is suspended.
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
  // Of so many sessions. `last` is called when all have arrived, before any of them goes on; if it throws, none does.
  explicit CommitBarrier(
      size_t count, kj::Function<void()> last = [] {})
      : missing(count), last(kj::mv(last)), all(kj::newPromiseAndFulfiller<void>()), open(all.promise.fork()) {}
  KJ_DISALLOW_COPY(CommitBarrier);

  // Of one that could go on. Resolves when all can; rejects if one of them has failed.
  kj::Promise<void> arrive() {
    if (--missing == 0)
      all.fulfiller->rejectIfThrows([this] {
        last();
        all.fulfiller->fulfill();
      });
    return open.addBranch();
  }
  // Of one that has failed, perhaps after it had arrived.
  void fail(const kj::Exception& exception) { all.fulfiller->reject(kj::cp(exception)); }

 private:
  size_t missing;
  kj::Function<void()> last;
  kj::PromiseFulfillerPair<void> all;
  kj::ForkedPromise<void> open;
};

}  // namespace vgpu::daemon
