#include "tools/vgpud/park.h"

#include <spdlog/spdlog.h>

#include "tools/common/descriptor.h"
#include "tools/vgpud/host-arena-file.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/parked-program.h"

namespace vgpu::daemon {
namespace {

// The program writes its object list anew, which may be a gigabyte.
constexpr std::chrono::seconds attachLimit{60};

void requireParkable(Sessions& sessions, Session& session) {
  session.requireIdle();
  if (session.state != control::State::SUSPENDED)
    fail("session " + session.id + " is not suspended: only the process of a suspended program can be saved");
  if (sessions.inMemory.has(session.snapshot))
    fail("the snapshot of session " + session.id + " is in memory: a process is saved only with a snapshot on disk");
}

}  // namespace

kj::Promise<void> suspendedWithMachine(Sessions& sessions, const std::string& id, std::string directory) {
  Session& session = sessions.get("id:" + id);
  auto saved = sessions.files.run(
      [arena = duplicate(session.hostArena), directory = std::move(directory)] { saveHostArena(arena, directory); });
  return session.exclusively(saved.then([&session] { return session.rewrite(); }));
}

kj::Promise<void> park(Sessions& sessions, Session& session) {
  requireParkable(sessions, session);
  auto refused = session.place.exists() ? session.leave() : session.park();
  // The session is gone when the program has closed its connection; its directory's removal is queued after others.
  auto left = session.gone().then([] {}, [](kj::Exception&&) {});
  return left.exclusiveJoin(kj::mv(refused)).then([&sessions] { return sessions.removalsEnded(); });
}

kj::Promise<kj::Maybe<StateDirectory::Shared>> unpark(Sessions& sessions, pid_t pid, std::string session, std::string becomes) {
  return sessions.files.run([pid, session = std::move(session), becomes = std::move(becomes),
                             folder = sessions.directory.sessions()]() -> kj::Maybe<StateDirectory::Shared> {
    auto parked = ParkedProgram::find(pid, session);
    if (!parked) return nullptr;
    // The program listens there already if this daemon has called it before and could not resume it. Then the directory is left unchanged,
    // because another daemon may be resuming the program from there.
    const std::string path = folder + "/" + becomes;
    if (parked->isIn(path))
      if (auto there = StateDirectory::find(path, becomes, pid)) return there;
    auto directory = StateDirectory::makeAgain(folder, becomes, pid);
    KJ_ON_SCOPE_FAILURE(directory->remove());
    parked->attach(directory->path(), becomes, attachLimit);
    return directory;
  });
}

}  // namespace vgpu::daemon
