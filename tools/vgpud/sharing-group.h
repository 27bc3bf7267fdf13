// Sessions that share with each other (docs/ipc.md) and are being resumed together: an object that one of them takes is available as soon
// as the giver's worker has restored it. All sessions that shared when they were suspended must be present.
//
// Event loop only. Lives as long as a worker of the group may make requests.
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
  // For `count` sessions.
  explicit SharingGroup(size_t count) : count(count), named(kj::newPromiseAndFulfiller<void>()), known(named.promise.fork()) {}
  KJ_DISALLOW_COPY(SharingGroup);

  // A session whose snapshot has been read joins; its group was `sharesWith` and itself. Resolves when all sessions are known; rejects if a
  // member of any session's group is missing.
  kj::Promise<void> join(const std::string& session, const std::vector<std::string>& sharesWith);
  bool has(const std::string& session) const { return members.count(session) != 0; }

  // For a session that waits for an object of another: resolves to true when more objects may be available, and to false when no more will
  // be, because all others are restored, or wait likewise. Rejects with the reason if another session was not restored.
  kj::Promise<bool> more();
  // A member gives an object.
  void given() { wake(true); }
  // A member is restored: its recipes take nothing more.
  void restored();
  void fail(const kj::Exception& exception);

 private:
  void wake(bool isMore);

  const size_t count;
  std::set<std::string> members;
  std::vector<std::pair<std::string, std::string>> wanted;  // a session, and a member that its group needs
  kj::PromiseFulfillerPair<void> named;
  kj::ForkedPromise<void> known;
  kj::Vector<kj::Own<kj::PromiseFulfiller<bool>>> waiting;
  size_t restoredCount = 0;
  kj::Maybe<kj::Exception> failure;
};

}  // namespace vgpu::daemon
