#include "tools/vgpud/exchange.h"

#include <fmt/format.h>

#include <algorithm>

#include "cuda-kinds.h"
#include "tools/common/descriptor.h"
#include "tools/vgpud/sessions.h"
#include "vgpu/base/fail.h"

namespace vgpu::daemon {
namespace {

// Limits per session: each part takes a descriptor, and a worker is not trusted.
constexpr size_t mostNames = 64 << 10, mostParts = 1 << 10, mostContent = 1 << 10;

class PassedFile final : public control::Descriptor::Server {
 public:
  explicit PassedFile(std::shared_ptr<const GivenFile> file) : file(std::move(file)) {}
  kj::Maybe<int> getFd() override { return file->fd(); }

 private:
  const std::shared_ptr<const GivenFile> file;
};

}  // namespace

// Serves one session's worker. It may outlive the session: then it finds only files that the program has given.
class Exchange::Server final : public control::Exchange::Server {
 public:
  Server(Exchange& exchange, const Session& session, kj::Maybe<kj::Own<SharingGroup>> group)
      : exchange(exchange), session(session.id), user(session.link->peer().uid), files(session.files), group(kj::mv(group)) {}

 protected:
  kj::Promise<void> publish(PublishContext context) override {
    auto params = context.getParams();
    auto object = params.getObject();
    if (object.getParts().size() > mostParts || object.getContent().size() > mostContent || exchange.all.size() >= mostNames)
      fail("a session shares more objects, or larger ones, than vgpud allows");
    auto kept = kj::heap<capnp::MallocMessageBuilder>();
    kept->setRoot(object);
    Given given{session, user, object.getKind(), kj::mv(kept), {}, {}};
    bool isNew = exchange.all.try_emplace(sharedNameIn(params.getName()), kj::mv(given)).second;
    context.getResults().setIsNew(isNew);
    if (object.getParts().size() == 0) tellGroup();
    return kj::READY_NOW;
  }

  kj::Promise<void> addPart(AddPartContext context) override {
    auto params = context.getParams();
    return receiveDescriptor(params.getPart()).then([this, name = sharedNameIn(params.getName())](kj::AutoCloseFd&& part) {
      auto found = exchange.all.find(name);
      if (found == exchange.all.end() || found->second.session != session) fail("a part of an object that this session does not share");
      if (found->second.parts.size() >= mostParts) fail("a shared object has more parts than vgpud allows");
      found->second.parts.push_back(kj::mv(part));
      if (isWhole(found->second)) tellGroup();
    });
  }

  kj::Promise<void> withdraw(WithdrawContext context) override {
    auto found = exchange.all.find(sharedNameIn(context.getParams().getName()));
    if (found == exchange.all.end() || found->second.session != session) return kj::READY_NOW;
    letGo(found->second);
    if (found->second.takers.empty()) exchange.all.erase(found);
    return kj::READY_NOW;
  }

  kj::Promise<void> find(FindContext context) override {
    return isThere(sharedNameIn(context.getParams().getName())).then([this, context]() mutable {
      Given* given = found(sharedNameIn(context.getParams().getName()));
      context.getResults().setIsFound(given != nullptr);
      if (given != nullptr) context.getResults().setObject(given->object->getRoot<control::SharedObject>());
    });
  }

  kj::Promise<void> open(OpenContext context) override {
    return isThere(sharedNameIn(context.getParams().getName())).then([this, context]() mutable {
      Given* given = found(sharedNameIn(context.getParams().getName()));
      if (given == nullptr) return;
      ++given->takers.try_emplace(session, Taken{0, exchange.opened++}).first->second.times;
      context.getResults().setIsFound(true);
      context.getResults().setParts(static_cast<uint32_t>(given->parts.size()));
    });
  }

  kj::Promise<void> part(PartContext context) override {
    auto params = context.getParams();
    auto found = exchange.all.find(sharedNameIn(params.getName()));
    if (found == exchange.all.end() || !found->second.takers.contains(session) || params.getIndex() >= found->second.parts.size())
      fail("a part of an object that this session has not opened");
    context.getResults().setPart(kj::heap<PassedDescriptor>(duplicate(found->second.parts[params.getIndex()])));
    return kj::READY_NOW;
  }

  kj::Promise<void> close(CloseContext context) override {
    auto found = exchange.all.find(sharedNameIn(context.getParams().getName()));
    if (found == exchange.all.end()) return kj::READY_NOW;
    auto& takers = found->second.takers;
    auto taker = takers.find(session);
    if (taker == takers.end()) return kj::READY_NOW;
    if (--taker->second.times == 0) takers.erase(taker);
    if (takers.empty() && found->second.session.empty()) exchange.all.erase(found);
    return kj::READY_NOW;
  }

  kj::Promise<void> file(FileContext context) override {
    return files->find(sharedNameIn(context.getParams().getName())).then([context](std::shared_ptr<const GivenFile>&& found) mutable {
      context.getResults().setIsFound(found != nullptr);
      if (found != nullptr) context.getResults().setFile(kj::heap<PassedFile>(std::move(found)));
    });
  }

 private:
  static bool isWhole(Given& given) {
    return given.parts.size() == given.object->getRoot<control::SharedObject>().getParts().size();
  }

  void tellGroup() {
    KJ_IF_MAYBE (resumed, group) (*resumed)->given();
  }

  // The object that this session may take.
  Given* found(const Name& name) {
    KJ_IF_MAYBE (resumed, group) return exchange.findFor(name, session, user, resumed->get());
    return exchange.findFor(name, session, user, nullptr);
  }

  // Resolves at once; in a group that is being resumed, when another session gives the object, or none will.
  kj::Promise<void> isThere(Name name) {
    KJ_IF_MAYBE (resumed, group) {
      Given* given = found(name);
      if (given == nullptr || !isWhole(*given))
        return (*resumed)->more().then(
            [this, name](bool isMore) -> kj::Promise<void> { return isMore ? isThere(name) : kj::Promise<void>(kj::READY_NOW); });
    }
    return kj::READY_NOW;
  }

  Exchange& exchange;
  const std::string session;
  const uid_t user;
  const GivenFiles::Shared files;
  kj::Maybe<kj::Own<SharingGroup>> group;
};

control::Exchange::Client Exchange::serve(const Session& session, kj::Maybe<kj::Own<SharingGroup>> group) {
  return kj::heap<Server>(*this, session, kj::mv(group));
}

const char* Exchange::kindOf(const Given& given) {
  return given.kind == static_cast<uint32_t>(api::Kind::EVENT) ? "an event" : "memory";
}

std::string Exchange::ownerOf(const Given& given) {
  if (!given.session.empty() || given.kind != static_cast<uint32_t>(api::Kind::PHYSICAL)) return given.session;
  auto first = std::ranges::min_element(given.takers, {}, [](auto& taker) { return taker.second.since; });
  return first == given.takers.end() ? "" : first->first;
}

void Exchange::letGo(Given& given) {
  given.session.clear();
  if (given.kind != static_cast<uint32_t>(api::Kind::PHYSICAL)) given.parts.clear();
}

// While its owner is being suspended, only sessions that are suspended with it may take more objects of it.
bool Exchange::isOpenFor(const std::string& owner, const std::string& session, const SharingGroup* group) {
  if (group != nullptr && group->has(owner)) return true;
  KJ_IF_MAYBE (giver, sessions.find(owner)) {
    if (giver->state == control::State::RUNNING) return true;
    KJ_IF_MAYBE (taker, sessions.find(session)) {
      return giver->state == control::State::SUSPENDING && giver->together != 0 && giver->together == taker->together;
    }
  }
  return false;
}

Exchange::Given* Exchange::findFor(const Name& name, const std::string& session, uid_t user, const SharingGroup* group) {
  auto found = all.find(name);
  if (found == all.end() || found->second.user != user || found->second.session == session) return nullptr;
  return isOpenFor(ownerOf(found->second), session, group) ? &found->second : nullptr;
}

void Exchange::forget(const std::string& session) {
  for (auto each = all.begin(); each != all.end();) {
    Given& given = each->second;
    given.takers.erase(session);
    if (given.session == session) letGo(given);
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
    const char* kind = kindOf(given);
    const std::string owner = ownerOf(given);
    for (auto& [taker, times] : given.takers) {
      std::string line;
      if (taker == owner) continue;
      if (owner == session) line = fmt::format("{} has opened {} of it", describe(taker), kind);
      if (taker == session) line = fmt::format("it has opened {} of {}", kind, describe(owner));
      if (!line.empty() && std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
    }
  }
  return lines;
}

void Exchange::requireAlone(const std::string& session) const {
  requireSuspendable(session);
  if (!inheritedBy(session).empty())
    fail(fmt::format("session {} has opened memory whose owner has freed it; only a suspend can save that memory", session));
}

void Exchange::requireSuspendable(const std::string& session) const {
  auto lines = sharedBy(session);
  if (!lines.empty())
    fail(fmt::format("session {} shares memory or events with others, so it can only be suspended together with them: {}", session,
                     fmt::join(lines, "; ")));
}

bool Exchange::gives(const std::string& session) const {
  return std::ranges::any_of(all, [&](auto& each) { return each.second.session == session; });
}

std::set<std::string> Exchange::groupOf(const std::string& session) const {
  std::set<std::string> group{session};
  for (size_t before = 0; before != group.size();) {
    before = group.size();
    for (auto& [name, given] : all) {
      const std::string owner = ownerOf(given);
      bool isTouched = group.contains(owner);
      for (auto& [taker, times] : given.takers) isTouched |= group.contains(taker);
      if (!isTouched || given.takers.empty()) continue;
      if (owner.empty())
        fail(fmt::format(
            "{} has opened {} of a session that has freed it or has ended, so no session could share it again after a resume",
            describe(given.takers.begin()->first), kindOf(given)));
      group.insert(owner);
      for (auto& [taker, times] : given.takers) group.insert(taker);
    }
  }
  return group;
}

std::vector<Exchange::Name> Exchange::inheritedBy(const std::string& session) const {
  std::vector<Name> names;
  for (auto& [name, given] : all)
    if (given.session.empty() && ownerOf(given) == session) names.push_back(name);
  return names;
}

}  // namespace vgpu::daemon
