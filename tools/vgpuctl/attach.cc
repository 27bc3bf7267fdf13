// attach: a virtual machine has been restored from saved memory, and so to an earlier state of its mailboxes.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>

#include "tools/common/guest-sockets.h"
#include "tools/common/reason.h"
#include "tools/vgpuctl/commands.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu::ctl {
namespace {

constexpr int answerMilliseconds = 10'000;

// Returns false if the session's process has ended.
bool attachSession(const std::string& socket) {
  kj::AutoCloseFd session;
  auto caught = kj::runCatchingExceptions([&] { session = connectUnix(socket); });
  KJ_IF_MAYBE (exception, caught) {
    if (exception->getType() == kj::Exception::Type::DISCONNECTED) return false;
    kj::throwFatalException(kj::mv(*exception));
  }
  pollfd polled{session, POLLIN, 0};
  char done;
  if (poll(&polled, 1, answerMilliseconds) <= 0 || read(session, &done, 1) != 1)
    fail("the relay process of a session did not reset its mailbox; its messages are in vgpud's log");
  return true;
}

}  // namespace

int attachGuest(const NodeAddress& node, const std::string& guest) {
  if (node.remote) fail("a virtual machine is attached on the host where it runs: name that host's node by its unix socket");
  const std::string folder = attachFolderOf(node.directory, guest);
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  if (error || guest.empty() || guest.find('/') != std::string::npos)
    fail("the vgpud in " + node.directory + " serves no guest \"" + guest + "\": start it with --guest " + guest + "=FILE");
  unsigned sessions = 0;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    sessions += attachSession(entry->path()) ? 1 : 0;
  fmt::print("{} session{} of {} can go on with the machine\n", sessions, sessions == 1 ? "" : "s", guest);
  return 0;
}

}  // namespace vgpu::ctl
