// machine hook: called by libvirt as /etc/libvirt/hooks/qemu (https://libvirt.org/hooks.html), with the machine's name, an operation, a
// sub-operation and an extra argument; the machine's XML is on standard input. libvirt waits for the hook, so it only starts processes and
// returns. It must not print, because for some operations standard output is the machine's new XML.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>

#include "tools/common/installation.h"
#include "tools/common/node-client.h"
#include "tools/common/spawn.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/known-machines.h"
#include "tools/vgpuctl/libvirt.h"
#include "vgpu/base/fail.h"

namespace vgpu::ctl {
namespace {

// The log of all followers of a machine, which run one after the other (follow-machine.cc).
kj::AutoCloseFd openLog(const KnownMachine& machine) {
  const std::string log = std::filesystem::path(machine.list).parent_path() / ("machine-" + machine.name + ".log");
  kj::AutoCloseFd out(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (out.get() < 0) fail("cannot open the log " + log + ": " + std::string(strerror(errno)));
  return out;
}

// Another libvirtd has started the follower, which still runs.
bool isFollowed(const KnownMachine& machine) { return flock(openLog(machine), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; }

// Starts a process that outlives this one. It must not inherit libvirt's descriptors, because libvirt waits until its pipes are closed.
// `restores`: returns when libvirt may restore the machine, and throws if it may not.
void follow(const KnownMachine& machine, bool restores) {
  kj::AutoCloseFd out = openLog(machine), in(open("/dev/null", O_RDONLY | O_CLOEXEC));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("cannot make a pipe: " + std::string(strerror(errno)));
  kj::AutoCloseFd ours(ends[0]), theirs(ends[1]);
  SpawnRequest request{.executable = "/proc/self/exe"};
  request.arguments = {"vgpuctl", "--node",     machine.node, "machine",       "follow", "--libvirt",   "--stay",
                       "--vm",    machine.name, "--qmp",      machine.monitor, "--to",   machine.target};
  if (!machine.saves.empty()) request.arguments.insert(request.arguments.end(), {"--saves", machine.saves});
  if (restores) request.arguments.push_back("--restored");
  request.inherits = {{in.get(), 0}, {restores ? theirs.get() : out.get(), 1}, {out.get(), 2}};
  request.ownSession = true;
  spawn(request);
  theirs = nullptr;
  char ready = 0;
  if (restores && read(ours, &ready, 1) != 1)
    fail("the sessions of '" + machine.name + "' cannot come back: the end of machine-" + machine.name + ".log beside " +
         machine.list + " says why. To restore it without them, remove " + savedFolder(machine.saves, machine.name));
}

bool hasSavedSessions(const KnownMachine& machine) {
  std::error_code ignored;
  return !machine.saves.empty() && std::filesystem::exists(savedFolder(machine.saves, machine.name), ignored);
}

}  // namespace

int hookMachine(const std::vector<std::string>& words) {
  char ignored[4096];
  while (read(STDIN_FILENO, ignored, sizeof ignored) > 0) {
  }  // read to the end, because libvirt writes all of it
  if (words.size() < 3)
    fail("libvirt calls this with NAME OPERATION SUB-OPERATION EXTRA, not with " + std::to_string(words.size()) + " words");
  auto machine = findKnownMachine(words[0]);
  if (!machine) return 0;
  const std::string& operation = words[1];
  if (operation == "started") follow(*machine, false);
  if (operation == "reconnect" && !isFollowed(*machine)) follow(*machine, false);
  // The machine is to come here, from another host or from a file: refused if its sessions' vgpud does not run.
  if (operation == "migrate" || operation == "restore") NodeClient(resolveNode(machine->node));
  if (operation == "restore" && hasSavedSessions(*machine)) follow(*machine, true);
  return 0;
}

}  // namespace vgpu::ctl
