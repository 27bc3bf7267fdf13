// Sessions that share with each other (docs/ipc.md) and are being resumed together: what one of them takes, another gives as soon
// as its worker has come so far. All of those that shared when they were suspended must be there.
//
// Event loop only. Lives as long as a worker of the group asks for anything.
#pragma once

#include <kj/async.h>
#include <kj/refcount.h>
#include <kj/vector.h>

#include <set>
#include <string>
#include <vector>

namespace vgpu::daemon {

class SharingGroup final : public kj::Refcounted {
 public:
  // Of so many sessions.
  explicit SharingGroup(size_t count) : count(count), named(kj::newPromiseAndFulfiller<void>()), known(named.promise.fork()) {}
  KJ_DISALLOW_COPY(SharingGroup);

  // Of a session whose snapshot has been read, and whose group was `sharesWith` and itself. Resolves when all are known; rejects
  // if some of one's group are not here.
  kj::Promise<void> join(const std::string& session, const std::vector<std::string>& sharesWith);
  bool has(const std::string& session) const { return members.count(session) != 0; }

  // Of one that looks for what another has to give: resolves to true when there may be more than before, and to false when there
  // will not be, because all others are restored, or wait likewise. Rejects with the reason for which one was not restored.
  kj::Promise<bool> more();
  // A member gives something.
  void given() { wake(true); }
  // A member is restored, and takes nothing more by its recipes.
  void restored();
  void fail(const kj::Exception& exception);

 private:
  void wake(bool isMore);

  const size_t count;
  std::set<std::string> members;
  std::vector<std::pair<std::string, std::string>> wanted;  // whose group needs whom
  kj::PromiseFulfillerPair<void> named;
  kj::ForkedPromise<void> known;
  kj::Vector<kj::Own<kj::PromiseFulfiller<bool>>> waiting;
  size_t restoredCount = 0;
  kj::Maybe<kj::Exception> failure;
};

}  // namespace vgpu::daemon
