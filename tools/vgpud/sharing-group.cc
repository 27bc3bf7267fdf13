#include "tools/vgpud/sharing-group.h"

#include <fmt/format.h>

#include "vgpu/base/fail.h"

namespace vgpu::daemon {

kj::Promise<void> SharingGroup::join(const std::string& session, const std::vector<std::string>& sharesWith) {
  members.insert(session);
  for (auto& other : sharesWith) wanted.emplace_back(session, other);
  if (members.size() == count)
    named.fulfiller->rejectIfThrows([this] {
      for (auto& [member, other] : wanted)
        if (!has(other))
          vgpu::fail(
              fmt::format("session {} shares memory or events with session {}, which was suspended together with it: resume both, with the "
                          "snapshot that has one of them in its folder `sessions`",
                          member, other));
      named.fulfiller->fulfill();
    });
  return known.addBranch();
}

kj::Promise<bool> SharingGroup::more() {
  KJ_IF_MAYBE (exception, failure) return kj::cp(*exception);
  auto next = kj::newPromiseAndFulfiller<bool>();
  waiting.add(kj::mv(next.fulfiller));
  if (restoredCount + waiting.size() >= count) wake(false);
  return kj::mv(next.promise);
}

void SharingGroup::restored() {
  ++restoredCount;
  if (!waiting.empty() && restoredCount + waiting.size() >= count) wake(false);
}

void SharingGroup::fail(const kj::Exception& exception) {
  if (failure != nullptr) return;
  failure = kj::cp(exception);
  named.fulfiller->reject(kj::cp(exception));
  auto woken = kj::mv(waiting);
  for (auto& each : woken) each->reject(kj::cp(exception));
}

void SharingGroup::wake(bool isMore) {
  auto woken = kj::mv(waiting);
  for (auto& each : woken) each->fulfill(kj::cp(isMore));
}

}  // namespace vgpu::daemon
