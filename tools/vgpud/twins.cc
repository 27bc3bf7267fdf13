#include "tools/vgpud/twins.h"

#include "tools/vgpud/sessions.h"

namespace vgpu::daemon {

Twins::Restoration::Restoration(Twins& twins, std::string directory, uid_t user)
    : twins(twins), directory(std::move(directory)), user(user) {
  twins.restorations.push_back(this);
}

Twins::Restoration::~Restoration() {
  twins.restorations.remove(this);
  end.fulfiller->fulfill();
}

kj::Promise<kj::Maybe<control::Worker::Client>> Twins::Restoration::twin() {
  using Found = kj::Maybe<control::Worker::Client>;
  for (auto& each : twins.sessions.all()) {
    auto& session = KJ_ASSERT_NONNULL(twins.sessions.find(each->id));
    if (session.state != control::State::RUNNING || session.memoryIn != directory || session.link->peer().uid != user) continue;
    KJ_IF_MAYBE (worker, session.worker) return Found((*worker)->remote());
  }
  for (Restoration* other : twins.restorations) {
    if (other == this) break;
    if (!isAlike(*other)) continue;
    KJ_IF_MAYBE (worker, other->restored) return Found(*worker);
    return other->ended.addBranch().then([this] { return twin(); });
  }
  return Found(nullptr);
}

void Twins::Restoration::done(control::Worker::Client worker) {
  restored = kj::mv(worker);
  end.fulfiller->fulfill();
}

}  // namespace vgpu::daemon
