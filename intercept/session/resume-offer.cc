#include "intercept/session/resume-offer.h"

#include <utility>

#include "intercept/session/control-messages.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"

namespace vgpu::client {
namespace {

// A daemon reports every few seconds while it restores, however long the restore takes.
constexpr std::chrono::seconds silenceLimit{60};

}  // namespace

ResumeOffer::ResumeOffer(ControlChannel channel, SessionControl& session)
    : channel(std::move(channel)), session(session), silentUntil(within(silenceLimit)) {}

ResumeOffer::State ResumeOffer::serve() {
  silentUntil = within(silenceLimit);
  State state = State::waiting;
  auto caught = kj::runCatchingExceptions([&] {
    std::optional<ControlMessage> message = channel.receive(0, within(messageLimit));
    state = message ? handle(*message) : giveUp("its vgpud has ended");
  });
  KJ_IF_MAYBE (exception, caught) return giveUp(exception->getDescription().cStr());
  return state;
}

ResumeOffer::State ResumeOffer::handle(ControlMessage& message) {
  auto said = message.reader->getRoot<control::ToSession>();
  switch (said.which()) {
    case control::ToSession::WORKING:
      return State::waiting;
    case control::ToSession::OPENED:
      if (accepted) fail("vgpud offered the session twice");
      accept();
      return State::waiting;
    case control::ToSession::OPEN_GATE:
      if (!accepted) fail("vgpud reports that the session runs, but did not offer it");
      return State::taken;
    case control::ToSession::REFUSED:
      return giveUp(text(said.getRefused()));
    case control::ToSession::LOST:
      return giveUp(text(said.getLost()));
    default:
      fail("vgpud sent a message that does not belong to a resume");
  }
}

void ResumeOffer::accept() {
  accepted = session.accept();
  faultPoint("resume.program-committed");
  send(channel, [&](control::ToNode::Builder message) { message.setAccepted(*accepted); });
}

bool ResumeOffer::withdraw() { return !accepted || session.withdraw(*accepted); }

ResumeOffer::State ResumeOffer::giveUp(const std::string& because) {
  if (withdraw()) return State::over;
  why = because;
  return State::lost;
}

// A worker that has claimed the session consumes frames, whether or not its daemon has reported it.
ResumeOffer::State ResumeOffer::expire() {
  State state = giveUp("");
  return state == State::lost ? State::taken : state;
}

}  // namespace vgpu::client
