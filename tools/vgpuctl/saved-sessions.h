// The sessions of a virtual machine's programs that are saved to disk and restored with it: the requests to their node. save-machine.cc and
// libvirt.cc decide when to make them.
//
// Used by the main thread, whose event loop is the node client's. A node's failure is each session's problem(), not an exception.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "tools/common/node-client.h"
#include "tools/vgpuctl/machine-folder.h"
#include "tools/vgpuctl/machine.h"

namespace vgpu::ctl {

class SavedSessions {
 public:
  SavedSessions(NodeClient& client, const MachineOptions& options, const MachineFolder& folder,
                const std::vector<MachineSession>& sessions);

  bool anyShares() const;

  // Suspends the sessions to the folder, while the machine runs.
  void suspend();
  // After a failure: resumes those that are suspended, including a session that was suspended but could not be prepared for the machine.
  void takeBack();
  // The machine has ended: nobody will resume the sessions that share memory with it.
  void giveUp();
  // The machine is on disk: the node forgets the sessions that share memory with it.
  void letGo();
  // Before the machine is loaded: sessions that share memory with it claim their places there, and get their workers.
  void prepare();
  // When the machine runs.
  void resume();

  // What failed in the last request to all sessions; empty if it succeeded for all.
  std::string problem() const;
  void print(const char* what) const;

 private:
  struct Saved {
    MachineSession session;
    std::string snapshot;  // its directory
    double seconds = 0;
    double onGpuSeconds = 0;  // the part of those seconds spent on the GPU's side
    bool isDone = false;
    std::string problem;
    kj::Maybe<control::Arrival::Client> arrival;  // for a session that comes back with its machine
  };
  static void note(Saved& one, control::Report::Reader report);
  void letGoOfFormer();
  void describe(const MachineSession& session, control::SessionInfo::Builder info) const;
  template <typename Work>
  void each(Work work);

  NodeClient& client;
  const MachineOptions& options;
  std::deque<Saved> all;
};

}  // namespace vgpu::ctl
