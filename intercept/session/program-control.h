// The connection of a program's session to its daemon, and the control thread (control.h has their purpose).
//
// One thread serves messages of the daemon, daemons that connect to resume the session (control-handover.cc), and requests of the program's
// threads, which wake it.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>

#include "intercept/session/control-messages.h"
#include "intercept/session/control.h"
#include "intercept/session/event-descriptor.h"
#include "intercept/session/given-files.h"
#include "intercept/session/opened-session.h"
#include "intercept/session/renewal.h"
#include "intercept/session/resume-offer.h"
#include "vgpu/control/parked-program.h"

namespace vgpu::client {

// The state of the gate. moving: closed, and another daemon may take the session as if it were suspended, until the present daemon cancels
// that. parked: suspended, without any resource of a node; a daemon can call it until it runs again. A lost session stays connected, so
// that `vgpuctl ps` shows it until the program ends.
enum class Phase { running, gateClosed, moving, suspended, parked, lost };

class ProgramControl final : public Control {
 public:
  explicit ProgramControl(const OpenRequest& request);

  ~ProgramControl() noexcept override;

  void leave() override;

  const MemoryFile& segment() const override { return opened.segment(); }
  const MemoryFile& hostArena() const override { return opened.hostArena(); }
  const std::string& session() const override { return opened.id(); }
  const std::string& directory() const override { return opened.directory(); }
  void serve(SessionControl& served) override;
  std::string renew() override { return renewal.await(); }
  GivenFiles& files() override { return givenFiles; }

 private:
  using seconds = std::chrono::seconds;
  static seconds reattachWish();
  static void* main(void* self);
  void run();
  void serveConnection();
  void handle(control::ToSession::Reader message);
  void closeGate();
  void comeApart();
  void stay();
  bool isSpokenTo();
  void disconnect(const std::string& why);
  void loseMemory();
  void lose(const std::string& why, const std::string& toWaiting = "the session is lost");
  void tellFiles();
  void askRenewal();
  void park();
  void lookForCall();
  void attach(const ParkingPlace::Call& call);
  void leaveNode();
  void serveListener();
  void meet(kj::AutoCloseFd peer);
  void settle(ResumeOffer::State state);
  int millisecondsLeft() const;
  void endWhatIsLate();

  EventDescriptor wake;
  OpenedSession opened;
  kj::AutoCloseFd listener;
  Renewal renewal;
  GivenFiles givenFiles;

  SessionControl* served = nullptr;
  pthread_t thread{};
  pid_t servingProcess = 0;

  // Used only by the control thread, once it runs.
  std::optional<ControlChannel> connection;
  Phase phase = Phase::running;
  bool isApart = false;              // the program shares no host memory any more
  bool isInMemory = false;           // while suspended: whether the snapshot is in the daemon's memory
  std::optional<ResumeOffer> offer;  // while suspended
  std::optional<ParkingPlace> place;  // while it is parked, until it runs again
  const seconds reattachWait;
  std::optional<std::chrono::steady_clock::time_point> waitsUntil;  // set while suspended to a directory that is not known
};

}  // namespace vgpu::client
