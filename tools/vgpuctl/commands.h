// vgpuctl's commands. Each returns the exit code, and throws kj::Exception if it fails.
#pragma once

#include <string>
#include <vector>

#include "tools/common/node-address.h"

namespace vgpu::ctl {

struct RunOptions {
  std::string name;  // of the session; empty: the program's file name
  std::vector<std::string> command;
};

// Runs a program on a virtual GPU of the node, or of a private daemon if no node is named and the default one does not answer.
// Returns the program's exit code, 128 + n if signal n killed it.
int runProgram(const NodeAddress& node, const RunOptions& options);

int listSessions(const NodeAddress& node, bool json);
int listWorkers(const NodeAddress& node, bool json);
int suspendSession(const NodeAddress& node, const std::string& session, const std::string& directory,
                   unsigned timeoutSeconds, bool json);
int resumeSession(const NodeAddress& node, const std::string& directory, bool json);

// `target` is a session (its object list is shown) or a snapshot's directory (its manifest is).
int inspect(const NodeAddress& node, const std::string& target, bool json);

}  // namespace vgpu::ctl
