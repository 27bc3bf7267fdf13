// The sessions of a virtual machine's programs that go to disk with it, and come back: what their node is asked. When that
// happens save-machine.cc and libvirt.cc decide.
//
// Of the main thread, whose event loop is the node client's. What a node does not do is each session's problem(), not an
// exception.
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

  // To the folder. The machine runs meanwhile.
  void suspend();
  // After a failure: those that are suspended. What has been suspended, and could not be made ready for the machine, is too.
  void takeBack();
  // Their machine has ended: nobody will resume those that share memory with it.
  void giveUp();
  // The machine is on disk: the node forgets those that share memory with it.
  void letGo();
  // Before the machine is loaded: those that share memory with it take their places there, and get their workers.
  void prepare();
  // When it runs.
  void resume();

  // Of the last that all of them were asked; empty: they have done it.
  std::string problem() const;
  void print(const char* what) const;

 private:
  struct Saved {
    MachineSession session;
    std::string snapshot;  // a directory
    double seconds = 0;
    double onGpuSeconds = 0;  // of these
    bool isDone = false;
    std::string problem;
    kj::Maybe<control::Arrival::Client> arrival;  // of one that comes back with its machine
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
