#include "tools/vgpud/suspend-together.h"

#include <errno.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>

#include <set>
#include <span>

#include "tools/vgpud/suspension.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/snapshot/snapshot-files.h"

namespace vgpu::daemon {
namespace {

// Refuses if a session outside of `members` shares with one of them.
void requireClosed(const Exchange& exchange, const std::vector<SessionFolder>& members) {
  std::set<std::string> all;
  for (auto& member : members) all.insert(member.session);
  for (auto& member : members)
    for (auto& other : exchange.groupOf(member.session))
      if (!all.contains(other))
        fail(fmt::format(
            "session {} shares memory or events with session {}, which is not being suspended with it: they have only just begun to share, "
            "or are not in the same process tree",
            member.session, other));
}

class GroupSuspension {
 public:
  GroupSuspension(Sessions& sessions, std::vector<SessionFolder> all, control::Progress::Client progress, unsigned timeoutSeconds,
                  control::Memory memory)
      : sessions(sessions), members(std::move(all)), failed(failure.promise.fork()) {
    requireClosed(sessions.exchange, members);
    for (auto& member : members) sessions.get("id:" + member.session).requireIdle();
    static uint64_t number = 0;
    together = kj::refcounted<SuspendedTogether>(
        members.size(), ++number, [this] { requireClosed(this->sessions.exchange, members); }, [this] { completeAll(); });
    together->folder = members.front().directory + "/" + snapshot::sessionsFolder;
    for (auto& member : std::span(members).subspan(1)) together->others.push_back(member.session);
    KJ_ON_SCOPE_FAILURE(clear());
    for (auto& member : members)
      suspensions.push_back(kj::heap<Suspension>(sessions, sessions.get("id:" + member.session), member.directory, progress,
                                                 timeoutSeconds, memory, kj::addRef(*together), suspensions.empty()));
  }
  ~GroupSuspension() noexcept(false) { clear(); }
  KJ_DISALLOW_COPY(GroupSuspension);

  kj::Promise<kj::Array<SuspendedMember>> run() {
    auto opened = openFolders().fork();
    auto all = kj::heapArrayBuilder<kj::Promise<SuspendedMember>>(suspensions.size());
    for (auto& suspension : suspensions) {
      auto work = opened.addBranch().then([&suspension = *suspension] { return suspension.run(); });
      // If one fails, the others abandon their long steps.
      auto others = failed.addBranch().then([]() -> OperationReport { KJ_UNREACHABLE; });
      auto exclusive = suspension->of().exclusively(work.exclusiveJoin(kj::mv(others)));
      auto named = exclusive.then([id = suspension->of().id](OperationReport&& report) {
        return SuspendedMember{id, kj::mv(report)};
      });
      all.add(named.catch_([this](kj::Exception&& exception) -> kj::Promise<SuspendedMember> {
        failure.fulfiller->reject(kj::cp(exception));
        return kj::mv(exception);
      }));
    }
    return kj::joinPromises(all.finish());
  }

 private:
  // The first session's folder contains those of the others.
  kj::Promise<void> openFolders() {
    return suspensions.front()
        ->openFolder()
        .then([this] {
          return sessions.files.run([path = together->folder] {
            if (mkdir(path.c_str(), 0700) != 0) fail(fmt::format("cannot make the folder {}: {}", path, strerror(errno)));
          });
        })
        .then([this] {
          auto others = kj::heapArrayBuilder<kj::Promise<void>>(suspensions.size() - 1);
          for (size_t i = 1; i < suspensions.size(); ++i) others.add(suspensions[i]->openFolder());
          return kj::joinPromises(others.finish());
        });
  }

  // In one turn of the event loop, so that nothing happens in between.
  void completeAll() {
    for (auto& suspension : suspensions) suspension->complete();
  }

  // The first one last, because its folder contains those of the others.
  void clear() {
    while (!suspensions.empty()) suspensions.pop_back();
  }

  Sessions& sessions;
  const std::vector<SessionFolder> members;
  kj::PromiseFulfillerPair<void> failure = kj::newPromiseAndFulfiller<void>();
  kj::ForkedPromise<void> failed;
  kj::Own<SuspendedTogether> together;
  std::vector<kj::Own<Suspension>> suspensions;  // in the order of the members
};

}  // namespace

kj::Promise<kj::Array<SuspendedMember>> suspendTogether(Sessions& sessions, SessionFolder first, std::vector<SessionFolder> tree,
                                                        control::Progress::Client progress, unsigned timeoutSeconds,
                                                        control::Memory memory) {
  auto members = std::move(tree);
  if (members.empty()) {
    members.push_back(first);
    for (auto& other : sessions.exchange.groupOf(first.session))
      if (other != first.session)
        members.push_back({other, fmt::format("{}/{}/{}", first.directory, snapshot::sessionsFolder, other)});
  }
  if (members.size() == 1) {
    requireClosed(sessions.exchange, members);
    auto& session = sessions.get("id:" + first.session);
    return suspend(sessions, session, first.directory, kj::mv(progress), timeoutSeconds, memory)
        .then([id = first.session](OperationReport&& report) {
          auto only = kj::heapArrayBuilder<SuspendedMember>(1);
          only.add(SuspendedMember{id, kj::mv(report)});
          return only.finish();
        });
  }
  auto group = kj::heap<GroupSuspension>(sessions, std::move(members), kj::mv(progress), timeoutSeconds, memory);
  auto work = group->run();
  return work.attach(kj::mv(group));
}

}  // namespace vgpu::daemon
