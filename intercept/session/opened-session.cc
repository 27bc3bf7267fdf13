#include "intercept/session/opened-session.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "intercept/session/control-messages.h"
#include "intercept/session/failure.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/unix-socket.h"
#include "vgpu/wire/segment.h"

namespace vgpu::client {
namespace {

// A cold worker with a real driver starts in well under a second (docs/facts.md: cuInit and a context take 0.35 s). A machine that needs a
// hundred times that is broken, and the program should report it rather than hang.
constexpr std::chrono::seconds openLimit{60};

// The daemon's socket for programs lies beside the socket that users name.
std::string sessionSocket(std::string node) {
  constexpr std::string_view scheme = "unix:", named = "/vgpud.sock", ours = "/session.sock";
  if (node.starts_with(scheme)) node.erase(0, scheme.size());
  if (node.ends_with(ours)) return node;
  if (node.ends_with(named)) node.resize(node.size() - named.size());
  return node + std::string(ours);
}

// A descriptor to pass on, not to read.
kj::AutoCloseFd openFolder(const std::string& path) {
  int fd = open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail("the session's state directory " + path + " cannot be opened: " + std::strerror(errno));
  return kj::AutoCloseFd(fd);
}

// The session checks the size later.
MemoryFile adopt(kj::AutoCloseFd& fd) {
  return MemoryFile::adopt(fd.release(), 1, std::numeric_limits<int64_t>::max());
}

}  // namespace

OpenedSession::OpenedSession(const OpenRequest& request) : request(request) {}

kj::AutoCloseFd OpenedSession::listen() const {
  return listenUnix(stateDirectory + "/" + reattachSocketName);
}

ControlChannel OpenedSession::open(int wake) {
  ControlChannel connection(connectUnix(sessionSocket(request.node)), wake);
  KJ_REQUIRE(isTrusted(peerOf(connection.fd())), "the vgpud belongs to another user; start one of your own",
             request.node.c_str());
  introduce(connection);
  std::optional<ControlMessage> answer = connection.receive(2, within(openLimit));
  if (!answer) fail("vgpud on " + request.node + " ended before it answered");
  readAnswer(*answer);
  return connection;
}

void OpenedSession::readAnswer(ControlMessage& answer) {
  auto message = answer.reader->getRoot<control::ToSession>();
  if (message.isRefused()) {
    const std::string why = "vgpud refused the session: " + text(message.getRefused());
    if (message.getInvalidDevice()) throw InvalidDevices(why);
    fail(why);
  }
  if (!message.isOpened()) fail("vgpud on " + request.node + " did not answer with a session");
  if (answer.descriptors.empty()) fail("vgpud on " + request.node + " opened a session without its memory");
  segmentFile = adoptSegment(answer.descriptors[0].release());
  if (answer.descriptors.size() > 1) hostArenaFile = adopt(answer.descriptors[1]);  // without it host memory is not shared
  sessionId = text(message.getOpened().getSession());
  stateDirectory = text(message.getOpened().getDirectory());
  stateFolder = openFolder(stateDirectory);
}

void OpenedSession::enter(const std::string& directory, const std::string& session) {
  stateFolder = openFolder(directory);
  stateDirectory = directory;
  sessionId = session;
}

void OpenedSession::introduce(ControlChannel& channel, const std::vector<GivenFiles::File>& files) const {
  std::vector<int> memory;
  for (int fd : {segmentFile.fd(), hostArenaFile.fd(), stateFolder.get()})
    if (fd >= 0) memory.push_back(fd);
  auto fill = [&](control::ToNode::Builder message) {
    auto open = message.initOpen();
    open.setVersion(control::VERSION);
    open.setPid(getpid());
    open.setName(reader(request.name));
    open.setProgram(reader(request.program));
    open.setSession(reader(sessionId));
    if (request.visible) open.setVisible(reader(*request.visible));
    open.setFiles(static_cast<uint32_t>(files.size()));
  };
  send(channel, fill, kj::arrayPtr(memory.data(), memory.size()));
  for (auto& file : files) give(channel, *file);
}

}  // namespace vgpu::client
