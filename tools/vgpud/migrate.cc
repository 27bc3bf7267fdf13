#include "tools/vgpud/migrate.h"

#include "tools/common/reason.h"
#include "tools/vgpud/migration.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/text.h"

namespace vgpu::daemon {
namespace {

// Completes a prepared migration, even if the caller ends meanwhile.
kj::Promise<Migrated> movedFrom(Sessions& sessions, kj::Own<Migration> migration) {
  auto moved = migration->move().attach(kj::addRef(*migration)).fork();
  sessions.spawn(moved.addBranch().ignoreResult().catch_([](kj::Exception&&) {}));
  return moved.addBranch();
}

// A migration whose steps a client controls. The session counts as busy as long as this object has it.
class DepartureServer final : public control::Departure::Server {
 public:
  DepartureServer(Sessions& sessions, Session& session, kj::Own<Migration> migration)
      : sessions(sessions), id(session.id), migration(kj::mv(migration)), occupied(occupy(session)) {}

 protected:
  kj::Promise<void> advance(AdvanceContext context) override {
    context.allowCancellation();
    return step(current().advance()).catch_([this](kj::Exception&& exception) -> kj::Promise<void> {
      end();
      return kj::mv(exception);
    });
  }

  kj::Promise<void> hold(HoldContext context) override {
    context.allowCancellation();
    Migration& mine = current();
    if (!mine.goesWithMachine()) fail("session " + id + " does not share memory with a virtual machine: it "
                                                        "cannot be held before it leaves");
    auto held = mine.advance().then([&mine] { return mine.hold(); }).then([&mine] { return mine.makeReady(); });
    return step(kj::mv(held)).catch_([this](kj::Exception&& exception) -> kj::Promise<void> {
      end();
      return kj::mv(exception);
    });
  }

  kj::Promise<void> stay(StayContext) override {
    KJ_IF_MAYBE (mine, leaving) (*mine)->giveUp();
    return kj::READY_NOW;
  }

  kj::Promise<void> watch(WatchContext context) override {
    context.allowCancellation();
    KJ_IF_MAYBE (mine, migration) {
      if ((*mine)->isReady()) return (*mine)->watch();
    }
    fail("session " + id + " is not held");
  }

  kj::Promise<void> leave(LeaveContext context) override {
    context.allowCancellation();
    Migration& mine = current();
    if (mine.goesWithMachine()) {
      if (!mine.isReady()) fail("session " + id + " must be held before its machine stops");
      leaving = kj::addRef(mine);
    }
    auto held = mine.isReady() ? kj::Promise<void>(kj::READY_NOW) : mine.advance().then([&mine] { return mine.hold(); });
    return step(kj::mv(held))
        .then([this] { return movedFrom(sessions, KJ_ASSERT_NONNULL(end())); },
              [this](kj::Exception&& exception) -> kj::Promise<Migrated> {
                end();
                return kj::mv(exception);
              })
        .then([context](Migrated&& migrated) mutable {
          context.getResults().initSession().setDevice(reader(migrated.device));
          migrated.report.give(context.getResults().initReport());
        });
  }

 private:
  kj::Promise<void> occupy(Session& session) {
    return session.exclusively(kj::Promise<void>(kj::NEVER_DONE))
        .catch_([this](kj::Exception&& exception) {
          why = reasonOf(exception);
          migration = nullptr;
        })
        .eagerlyEvaluate(nullptr);
  }

  Migration& current() {
    KJ_IF_MAYBE (mine, migration) {
      if (!isStepping && sessions.find(id) != nullptr) return **mine;
      fail("a step of the migration of session " + id + " has not ended yet");
    }
    fail("session " + id + " is no longer migrating: " + why);
  }

  kj::Promise<void> step(kj::Promise<void> work) {
    isStepping = true;
    auto mine = kj::addRef(*KJ_ASSERT_NONNULL(migration));
    auto kept = KJ_ASSERT_NONNULL(sessions.find(id)).exclusively(work.attach(kj::mv(mine)));
    return kept.attach(kj::defer([this] { isStepping = false; }));
  }

  kj::Maybe<kj::Own<Migration>> end() {
    why = "it has moved, or its migration failed";
    occupied = nullptr;
    return kj::mv(migration);
  }

  Sessions& sessions;
  const std::string id;
  kj::Maybe<kj::Own<Migration>> migration;  // until it is over
  kj::Maybe<kj::Own<Migration>> leaving;    // with its machine
  std::string why;                          // why it is over
  bool isStepping = false;
  kj::Promise<void> occupied;
};

}  // namespace

kj::Promise<Migrated> migrate(Sessions& sessions, Session& session, MigrateOptions options, control::Progress::Client progress) {
  session.requireIdle();
  auto migration = kj::refcounted<Migration>(sessions, session, std::move(options), kj::mv(progress));
  auto prepared = session.exclusively(migration->prepare());
  return prepared.then([&sessions, migration = kj::mv(migration)]() mutable { return movedFrom(sessions, kj::mv(migration)); });
}

kj::Promise<control::Departure::Client> depart(Sessions& sessions, Session& session, MigrateOptions options,
                                               control::Progress::Client progress) {
  session.requireIdle();
  options.withMachine = session.place.exists();
  auto migration = kj::refcounted<Migration>(sessions, session, std::move(options), kj::mv(progress));
  auto& begun = *migration;
  auto server = kj::heap<DepartureServer>(sessions, session, kj::mv(migration));
  auto taken = session.exclusively(begun.begin().attach(kj::addRef(begun)));
  return taken.then([server = kj::mv(server)]() mutable -> control::Departure::Client { return kj::mv(server); });
}

}  // namespace vgpu::daemon
