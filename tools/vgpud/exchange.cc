#include "tools/vgpud/exchange.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/common/descriptor.h"
#include "tools/vgpud/sessions.h"
#include "vgpu/base/fail.h"

namespace vgpu::daemon {
namespace {

// Of one session at a time: a descriptor a part, and a worker is not trusted.
constexpr size_t mostNames = 64 << 10, mostParts = 1 << 10, mostContent = 1 << 10;

}  // namespace

// Of one session. It may live longer than the session: what it is asked then finds nothing.
class Exchange::Server final : public control::Exchange::Server {
 public:
  Server(Exchange& exchange, std::string session, uid_t user) : exchange(exchange), session(std::move(session)), user(user) {}

 protected:
  kj::Promise<void> publish(PublishContext context) override {
    auto params = context.getParams();
    auto object = params.getObject();
    if (object.getParts().size() > mostParts || object.getContent().size() > mostContent || exchange.all.size() >= mostNames)
      fail("a session shares more than a daemon keeps");
    auto kept = kj::heap<capnp::MallocMessageBuilder>();
    kept->setRoot(object);
    bool isNew =
        exchange.all.try_emplace(nameIn(params.getName()), Given{session, user, object.getSize() != 0, kj::mv(kept), {}, {}})
            .second;
    context.getResults().setIsNew(isNew);
    return kj::READY_NOW;
  }

  kj::Promise<void> addPart(AddPartContext context) override {
    auto params = context.getParams();
    return receiveDescriptor(params.getPart()).then([this, name = nameIn(params.getName())](kj::AutoCloseFd&& part) {
      auto found = exchange.all.find(name);
      if (found == exchange.all.end() || found->second.session != session) fail("a part of what this session does not share");
      if (found->second.parts.size() >= mostParts) fail("a session shares more parts than a daemon keeps");
      found->second.parts.push_back(kj::mv(part));
    });
  }

  kj::Promise<void> withdraw(WithdrawContext context) override {
    auto found = exchange.all.find(nameIn(context.getParams().getName()));
    if (found == exchange.all.end() || found->second.session != session) return kj::READY_NOW;
    if (found->second.takers.empty()) {
      exchange.all.erase(found);
    } else {
      found->second.session.clear();  // who has it keeps it, and nobody else gets it
      found->second.parts.clear();
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> find(FindContext context) override {
    auto* given = exchange.findFor(nameIn(context.getParams().getName()), session, user);
    context.getResults().setIsFound(given != nullptr);
    if (given != nullptr) context.getResults().setObject(given->object->getRoot<control::SharedObject>());
    return kj::READY_NOW;
  }

  kj::Promise<void> open(OpenContext context) override {
    auto* given = exchange.findFor(nameIn(context.getParams().getName()), session, user);
    if (given == nullptr) return kj::READY_NOW;
    ++given->takers[session];
    context.getResults().setIsFound(true);
    context.getResults().setParts(static_cast<uint32_t>(given->parts.size()));
    return kj::READY_NOW;
  }

  kj::Promise<void> part(PartContext context) override {
    auto params = context.getParams();
    auto* given = exchange.findFor(nameIn(params.getName()), session, user);
    if (given == nullptr || !given->takers.contains(session) || params.getIndex() >= given->parts.size())
      fail("a part of what this session has not opened");
    context.getResults().setPart(kj::heap<PassedDescriptor>(duplicate(given->parts[params.getIndex()])));
    return kj::READY_NOW;
  }

  kj::Promise<void> close(CloseContext context) override {
    auto found = exchange.all.find(nameIn(context.getParams().getName()));
    if (found == exchange.all.end()) return kj::READY_NOW;
    auto& takers = found->second.takers;
    auto taker = takers.find(session);
    if (taker == takers.end()) return kj::READY_NOW;
    if (--taker->second == 0) takers.erase(taker);
    if (takers.empty() && found->second.session.empty()) exchange.all.erase(found);
    return kj::READY_NOW;
  }

 private:
  Exchange& exchange;
  const std::string session;
  const uid_t user;
};

control::Exchange::Client Exchange::serve(const Session& session) {
  return kj::heap<Server>(*this, session.id, session.link->peer().uid);
}

Exchange::Name Exchange::nameIn(capnp::Data::Reader data) {
  Name name;
  if (data.size() != name.size()) fail("the name of a shared object has 16 bytes");
  std::copy(data.begin(), data.end(), name.begin());
  return name;
}

// While either session is being suspended nothing new is shared.
Exchange::Given* Exchange::findFor(const Name& name, const std::string& session, uid_t user) {
  auto found = all.find(name);
  if (found == all.end() || found->second.user != user || found->second.session == session) return nullptr;
  KJ_IF_MAYBE (giver, sessions.find(found->second.session)) {
    if (giver->state == control::State::RUNNING) return &found->second;
  }
  return nullptr;
}

void Exchange::forget(const std::string& session) {
  for (auto each = all.begin(); each != all.end();) {
    Given& given = each->second;
    given.takers.erase(session);
    if (given.session == session) {
      given.session.clear();
      given.parts.clear();
    }
    each = given.session.empty() && given.takers.empty() ? all.erase(each) : std::next(each);
  }
}

std::string Exchange::describe(const std::string& id) const {
  KJ_IF_MAYBE (session, sessions.find(id)) {
    return fmt::format("session {} ({}, pid {})", session->id, session->name, session->pid);
  }
  return id.empty() ? "a session that has freed it" : "session " + id;
}

std::vector<std::string> Exchange::sharedBy(const std::string& session) const {
  std::vector<std::string> lines;
  for (auto& [name, given] : all) {
    const char* kind = given.isMemory ? "memory" : "an event";
    for (auto& [taker, times] : given.takers) {
      std::string line;
      if (given.session == session) line = fmt::format("{} has {} of it", describe(taker), kind);
      if (taker == session) line = fmt::format("it has {} of {}", kind, describe(given.session));
      if (!line.empty() && std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
    }
  }
  return lines;
}

void Exchange::requireAlone(const std::string& session) const {
  auto lines = sharedBy(session);
  if (lines.empty()) return;
  fail(fmt::format(
      "session {} shares with others, and would have to be suspended together with them, which is not implemented: {}", session,
      fmt::join(lines, "; ")));
}

}  // namespace vgpu::daemon
