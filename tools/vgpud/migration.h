// One migration, step by step; migrate.h describes it, and combines the steps.
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
  // All steps until the session is complete at the target.
  kj::Promise<void> prepare();
  // Connects to the target's daemon; resolves when it has agreed to take the session.
  kj::Promise<void> begin();
  // While the program runs: sends what the target lacks. The first call also connects the streams.
  kj::Promise<void> advance();
  // Holds the program, and sends the rest.
  kj::Promise<void> hold();
  // After hold(), for a session that moves with its machine: makes the target complete except for the program's memory, which the machine's
  // migration sends.
  kj::Promise<void> makeReady();
  bool isReady() const { return isTold; }
  // From then on: rejects when the target cannot take the session any more.
  kj::Promise<void> watch();
  bool goesWithMachine() const { return options.withMachine; }

  // The machine runs here again: the session stays.
  void giveUp();
  // From here on the program may run elsewhere; the session is not used any more unless it stays.
  kj::Promise<Migrated> move();

 private:
  // Whether the target gets files, and a relay of its own for the program.
  bool isFar() const { return elsewhere || options.withMachine; }
  static WorkerProcess& workerOf(Session& session);
  kj::Promise<void> greet();
  kj::Promise<void> announce();
  // Connects the streams, and the program's relay, to the target.
  kj::Promise<void> meet();
  // Makes a folder of the daemon's own, as for a new worker.
  kj::Promise<void> openFolder();
  kj::Promise<void> sendAhead();
  kj::Promise<void> runRounds();
  // Sends pinned memory. If that takes long, further rounds follow, because memory changes meanwhile.
  kj::Promise<void> sendFilesAhead(unsigned timesAgain);
  kj::Promise<void> capture();
  kj::Promise<Migrated> finish();
  // Removes the snapshot in the folder first, so that not two removals work on the same files.
  void removeFolderAfter(kj::Promise<void> writerEnded);
  // The target has failed, or cannot be asked any more: the program tells whether it still has the session.
  kj::Promise<Migrated> comeBack(kj::Exception&& exception);
  kj::Promise<Migrated> stay(Session& here, kj::Exception&& exception);
  kj::Promise<Migrated> finishUnanswered(const kj::Exception& exception);
  // The worker and the program go on.
  void abandon();
  // Withdraws the move from a program that was told to move.
  static kj::Promise<void> takeBack(Sessions& sessions, std::string id);

  Sessions& sessions;
  Session* const session;  // valid only as long as it cannot move
  const std::string id;
  const MigrateOptions options;
  const std::optional<Endpoint> elsewhere;  // the target's address, if it may be on another host
  control::Progress::Client progress;
  WorkerProcess& worker;
  kj::Own<WorkerProcess> held;  // the session's worker, while the session may move
  std::shared_ptr<const bool> hasMoved;
  kj::Own<TargetNode> peer;
  kj::Maybe<control::Arrival::Client> arrival;
  kj::Maybe<control::MigrationSource::Client> source;
  std::string streamSocket, token, path;
  std::vector<Reached> streams;  // the worker takes their sockets over
  PassingFolder state;
  kj::Own<TargetFolder> folder;
  kj::Own<DepartingFiles> departing;
  kj::AutoCloseFd target;  // passed on to the worker
  kj::Promise<std::string> workerExit;
  kj::TimePoint start, heldAt = start;
  bool isBegun = false, isHeld = false, isTold = false, isMoving = false;
  kj::PromiseFulfillerPair<void> givenUp = kj::newPromiseAndFulfiller<void>();
  Migrated result;
};

}  // namespace vgpu::daemon
