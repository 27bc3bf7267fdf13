// machine hook: what libvirt calls as /etc/libvirt/hooks/qemu (https://libvirt.org/hooks.html), with the machine's name, an
// operation, a sub-operation and an extra argument; its XML is on standard input. libvirt waits for it, so it begins things and
// does not stay, and must not print: of some operations standard output is the machine's new XML.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "tools/common/installation.h"
#include "tools/common/node-client.h"
#include "tools/common/spawn.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/known-machines.h"
#include "vgpu/base/fail.h"

namespace vgpu::ctl {
namespace {

// A process that outlives this one, and has nothing of libvirt's: it waits for whoever has an end of its pipes.
void follow(const KnownMachine& machine) {
  const std::string log = std::filesystem::path(machine.list).parent_path() / ("machine-" + machine.name + ".log");
  kj::AutoCloseFd out(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  kj::AutoCloseFd in(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (out.get() < 0) fail("there can be no log " + log + ": " + std::string(strerror(errno)));
  SpawnRequest request{.executable = "/proc/self/exe"};
  request.arguments = {"vgpuctl", "--node",     machine.node, "machine",       "follow", "--stay",
                       "--vm",    machine.name, "--qmp",      machine.monitor, "--to",   machine.target};
  request.inherits = {{in.get(), 0}, {out.get(), 1}, {out.get(), 2}};
  request.ownSession = true;
  spawn(request);
}

}  // namespace

int hookMachine(const std::vector<std::string>& words) {
  char ignored[4096];
  while (read(STDIN_FILENO, ignored, sizeof ignored) > 0) {
  }  // libvirt writes it whole
  if (words.size() < 3)
    fail("libvirt calls this with NAME OPERATION SUB-OPERATION EXTRA, not with " + std::to_string(words.size()) + " words");
  auto machine = findKnownMachine(words[0]);
  if (!machine) return 0;
  const std::string& operation = words[1];
  // Its QEMU runs, or libvirt has been started again.
  if (operation == "started" || operation == "reconnect") follow(*machine);
  // It is to come here, or back from a file: not if there is no vgpud for its sessions.
  if (operation == "migrate" || operation == "restore") NodeClient(resolveNode(machine->node));
  return 0;
}

}  // namespace vgpu::ctl
