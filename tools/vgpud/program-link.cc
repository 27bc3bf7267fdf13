#include "tools/vgpud/program-link.h"

#include <capnp/serialize-async.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "tools/common/reason.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/channel.h"

namespace vgpu::daemon {
namespace {

constexpr auto openLimit = 10 * kj::SECONDS;
// The event loop serves other connections only when nothing is ready, so a program that always has a message ready is made to wait.
constexpr unsigned messagesInTurn = 16;

capnp::ReaderOptions messageLimits() {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = ControlChannel::mostBytes / sizeof(capnp::word);
  options.nestingLimit = 8;
  return options;
}

std::string text(capnp::Text::Reader reader) { return {reader.begin(), reader.size()}; }

ProgramOpen takeOpen(control::ToNode::Reader message, kj::ArrayPtr<kj::AutoCloseFd> descriptors) {
  if (message.isRefused()) fail("the program refused: " + text(message.getRefused()));
  if (!message.isOpen()) fail("the program did not begin with `open`");
  auto open = message.getOpen();
  if (open.getVersion() != control::VERSION) {
    fail(fmt::format("the program's vgpu speaks control version {}, this vgpud version {}: use the same vgpu for both",
                     open.getVersion(), control::VERSION));
  }
  ProgramOpen request{text(open.getName()), text(open.getProgram()), text(open.getSession()), open.getPid(), open.getRelayed()};
  request.place = placeOf(open.getPlace());
  if (open.hasVisible()) request.visible = text(open.getVisible());
  const bool answersReattach = !request.session.empty(), isOfGuest = request.relayed && descriptors.size() == 1;
  if (!answersReattach && isOfGuest) {
    request.segment = kj::mv(descriptors[0]);
    return request;
  }
  if (descriptors.size() != (answersReattach ? 3 : 0)) {
    fail(fmt::format("a program that {} must send {}, but sent {} file descriptors",
                     answersReattach ? "is resumed" : "opens a session",
                     answersReattach ? "those of its segment, its host arena and its state directory" : "no file descriptors",
                     descriptors.size()));
  }
  if (answersReattach) {
    request.segment = kj::mv(descriptors[0]);
    request.hostArena = kj::mv(descriptors[1]);
    request.state = kj::mv(descriptors[2]);
  }
  return request;
}

}  // namespace

ProgramPlace placeOf(control::GuestPlace::Reader place) {
  return {text(place.getGuest()), place.getSlot(), place.getClaim(), place.getFileBytes()};
}

ProgramLink::ProgramLink(kj::AsyncIoContext& io, kj::AutoCloseFd socket)
    : io(io),
      other(peerOf(socket)),
      stream(io.lowLevelProvider->wrapUnixSocketFd(kj::mv(socket))),
      writes(kj::Promise<void>(kj::READY_NOW).fork()) {}

kj::Promise<ProgramOpen> ProgramLink::receiveOpen() {
  auto space = kj::heapArray<kj::AutoCloseFd>(4);
  auto read = capnp::tryReadMessage(*stream, space, messageLimits());
  return read
      .then([this](kj::Maybe<capnp::MessageReaderAndFds>&& message) -> kj::Promise<ProgramOpen> {
        KJ_IF_MAYBE (received, message) {
          auto root = received->reader->getRoot<control::ToNode>();
          auto open = takeOpen(root, received->fds);
          open.files = std::make_shared<GivenFiles>(io.provider->getTimer());
          return receiveFiles(kj::mv(open), root.getOpen().getFiles());
        }
        fail("the program closed the connection before it opened a session");
      })
      .attach(kj::mv(space))
      .exclusiveJoin(io.provider->getTimer().afterDelay(openLimit).then(
          []() -> ProgramOpen { fail("the program did not answer in 10 s"); }));
}

kj::Promise<ProgramOpen> ProgramLink::receiveFiles(ProgramOpen open, uint32_t count) {
  if (count == 0) return kj::mv(open);
  if (count > GivenFiles::most) fail("the program announced more files than vgpud allows for one session");
  return capnp::tryReadMessage(*stream, beside, messageLimits())
      .then([this, open = kj::mv(open), count](kj::Maybe<capnp::MessageReaderAndFds>&& message) mutable {
        KJ_IF_MAYBE (received, message) {
          auto root = received->reader->getRoot<control::ToNode>();
          if (!root.isGive() || received->fds.size() != 1) fail("the program did not send the files that it announced");
          open.files->put(sharedNameIn(root.getGive()), kj::mv(received->fds[0]));
          return receiveFiles(kj::mv(open), count - 1);
        }
        fail("the program closed the connection before it had sent its files");
      });
}

kj::Promise<void> ProgramLink::serve(Handle handle) {
  handler = kj::mv(handle);
  return serveNext().exclusiveJoin(kj::mv(unread.promise));
}

kj::Promise<void> ProgramLink::serveNext() {
  return capnp::tryReadMessage(*stream, beside, messageLimits())
      .then([this](kj::Maybe<capnp::MessageReaderAndFds>&& message) -> kj::Promise<void> {
        KJ_IF_MAYBE (got, message) {
          kj::Maybe<kj::AutoCloseFd> file;
          if (got->fds.size() != 0) file = kj::mv(got->fds[0]);
          KJ_ASSERT_NONNULL(handler)(got->reader->getRoot<control::ToNode>(), kj::mv(file));
          if (++received % messagesInTurn != 0) return serveNext();
          return io.provider->getTimer().afterDelay(0 * kj::SECONDS).then([this] { return serveNext(); });
        }
        return kj::READY_NOW;
      });
}

void ProgramLink::send(kj::FunctionParam<void(control::ToSession::Builder)> fill,
                       kj::Array<kj::AutoCloseFd> descriptors) {
  if (queued == mostQueued) {
    unread.fulfiller->rejectIfThrows(
        [] { fail(fmt::format("it does not read its connection: {} messages of this vgpud wait", mostQueued)); });
    return;
  }
  auto message = kj::heap<capnp::MallocMessageBuilder>();
  fill(message->initRoot<control::ToSession>());
  ++queued;
  writes = writes.addBranch()
               .then([this, message = kj::mv(message), descriptors = kj::mv(descriptors)]() mutable {
                 auto written = write(*message, descriptors);
                 return written.attach(kj::mv(message), kj::mv(descriptors));
               })
               .fork();
  // KJ does not run a branch that nobody waits for; it runs the fork as long as one of its branches runs.
  writing = writes.addBranch().eagerlyEvaluate(nullptr);
}

kj::Promise<void> ProgramLink::write(capnp::MessageBuilder& message, kj::ArrayPtr<const kj::AutoCloseFd> descriptors) {
  auto numbers = KJ_MAP(fd, descriptors) { return fd.get(); };
  // If the program has ended, the write throws instead of rejecting its promise.
  auto done = kj::evalNow([&] { return capnp::writeMessage(*stream, numbers, message); });
  return done.attach(kj::mv(numbers))
      .catch_([](kj::Exception&& exception) {
        spdlog::debug("a message could not be sent to a program: {}", reasonOf(exception));
      })
      .then([this] { --queued; });
}

}  // namespace vgpu::daemon
