// One migration, step by step: migrate.h says what it is, and puts the steps together.
#pragma once

#include <kj/refcount.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/vgpud/arrival-files.h"
#include "tools/vgpud/migrate.h"
#include "tools/vgpud/passing-folder.h"
#include "tools/vgpud/target-folder.h"
#include "tools/vgpud/target-node.h"

namespace vgpu::daemon {

class Migration final : public kj::Refcounted {
 public:
  Migration(Sessions& sessions, Session& session, MigrateOptions asked, control::Progress::Client progress);
  ~Migration() noexcept(false);
  KJ_DISALLOW_COPY(Migration);
  // Until the session is complete at the target.
  kj::Promise<void> prepare();
  // Until the target has said that it takes the session.
  kj::Promise<void> begin();
  // While the program runs, the first time also to connect with the target: sends what the target does not have.
  kj::Promise<void> advance();
  // Holds the program, and sends the rest.
  kj::Promise<void> hold();
  // After hold(), with the machine: the target has all but the program's memory then, and that goes with the machine's.
  kj::Promise<void> makeReady();
  bool isReady() const { return isTold; }
  // From then on: rejects when the target cannot take the session any more.
  kj::Promise<void> watch();
  bool goesWithMachine() const { return options.withMachine; }

  // The machine runs here again: the session stays.
  void giveUp();
  // From here on the program may be elsewhere; this does not use the session unless it stays.
  kj::Promise<Migrated> move();

 private:
  // Whether the target gets files and a program's relay of its own.
  bool isFar() const { return elsewhere || options.withMachine; }
  static WorkerProcess& workerOf(Session& session);
  kj::Promise<void> greet();
  kj::Promise<void> announce();
  // The streams, and the relay beside the program, come to the target.
  kj::Promise<void> meet();
  // A folder of the daemon's own, as for a new worker.
  kj::Promise<void> openFolder();
  kj::Promise<void> sendAhead();
  kj::Promise<void> runRounds();
  // Pinned memory. Memory changes meanwhile: if that takes long, there are rounds again.
  kj::Promise<void> sendFilesAhead(unsigned timesAgain);
  kj::Promise<void> capture();
  kj::Promise<Migrated> finish();
  // First the snapshot in it: two that remove the same files get into each other's way.
  void removeFolderAfter(kj::Promise<void> writerEnded);
  // The target has failed, or cannot be asked any more: the program knows whether it has the session.
  kj::Promise<Migrated> comeBack(kj::Exception&& exception);
  kj::Promise<Migrated> stay(Session& here, kj::Exception&& exception);
  kj::Promise<Migrated> finishUnanswered(const kj::Exception& exception);
  // The worker and the program go on.
  void abandon();
  // The program has been told that it moves, and will not.
  static kj::Promise<void> takeBack(Sessions& sessions, std::string id);

  Sessions& sessions;
  Session* const session;  // while it cannot move
  const std::string id;
  const MigrateOptions options;
  const std::optional<Endpoint> elsewhere;  // where the target is, if it may be on another host
  control::Progress::Client progress;
  WorkerProcess& worker;
  kj::Own<WorkerProcess> held;  // the same, while the session may move
  std::shared_ptr<const bool> hasMoved;
  kj::Own<TargetNode> peer;
  kj::Maybe<control::Arrival::Client> arrival;
  kj::Maybe<control::MigrationSource::Client> source;
  std::string streamSocket, token, path;
  std::vector<Reached> streams;  // their sockets are the worker's after a while
  PassingFolder state;
  kj::Own<TargetFolder> folder;
  kj::Own<DepartingFiles> departing;
  kj::AutoCloseFd target;  // on its way to the worker
  kj::Promise<std::string> workerExit;
  kj::TimePoint start, heldAt = start;
  bool isBegun = false, isHeld = false, isTold = false, isMoving = false;
  kj::PromiseFulfillerPair<void> givenUp = kj::newPromiseAndFulfiller<void>();
  Migrated result;
};

}  // namespace vgpu::daemon
