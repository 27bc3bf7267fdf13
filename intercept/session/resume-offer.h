// The exchange with a daemon that resumes this program, from accepting its connection until its worker consumes frames.
//
// Owns the connection; control thread only. The program stays suspended meanwhile, with its gate closed. Until the worker has claimed the
// session (vgpu/wire/handover.h) either side can cancel, and after any failure the program can be resumed again, here or elsewhere. A
// daemon that sends nothing for a minute is given up.
#pragma once

#include <optional>
#include <string>

#include "intercept/session/control.h"
#include "vgpu/control/channel.h"

namespace vgpu::client {

class ResumeOffer {
 public:
  enum class State {
    waiting,
    over,   // cancelled or failed
    taken,  // the worker consumes frames: open the gate
    lost,   // the worker has started to consume frames, and it or its daemon has ended
  };

  ResumeOffer(ControlChannel channel, SessionControl& session);

  int fd() const { return channel.fd(); }
  // When to call expire(), unless serve() is called before.
  std::chrono::steady_clock::time_point deadline() const { return silentUntil; }

  // Reads the daemon's next message and replies.
  State serve();
  State expire();
  // Cancels it. False if the worker has claimed the session.
  bool withdraw();

  // After `taken` or `lost`.
  ControlChannel release() { return std::move(channel); }
  const std::string& reason() const { return why; }

 private:
  State handle(ControlMessage& message);
  void accept();
  // Ends the offer when the daemon gives up, is gone or sends an invalid message.
  State giveUp(const std::string& because);

  ControlChannel channel;
  SessionControl& session;
  std::chrono::steady_clock::time_point silentUntil;
  std::optional<uint64_t> accepted;  // number of the handover
  std::string why;
};

}  // namespace vgpu::client
