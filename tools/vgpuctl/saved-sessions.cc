#include "tools/vgpuctl/saved-sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/common/printable.h"
#include "tools/common/reason.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/text.h"
#include "vgpu/snapshot/manifest.h"
#include "vgpu/snapshot/snapshot-files.h"

namespace vgpu::ctl {

using nlohmann::json;
namespace fs = std::filesystem;

SavedSessions::SavedSessions(NodeClient& client, const MachineOptions& options, const MachineFolder& folder,
                             const std::vector<MachineSession>& sessions)
    : client(client), options(options) {
  for (auto& session : sessions) all.push_back({.session = session, .snapshot = folder.snapshotOf(session.id)});
}

// For all sessions at the same time, so that a machine's programs wait only for the slowest.
template <typename Work>
void SavedSessions::each(Work work) {
  auto promises = kj::heapArrayBuilder<kj::Promise<void>>(all.size());
  for (auto& one : all) {
    one.isDone = false;
    promises.add(work(one).then([&one] { one.isDone = true; },
                                [&one](kj::Exception&& exception) { one.problem = printable(reasonOf(exception)); }));
  }
  client.wait(kj::joinPromises(promises.finish()));
}

bool SavedSessions::anyShares() const {
  return std::ranges::any_of(all, [](const Saved& one) { return one.session.sharesMemory(); });
}

void SavedSessions::suspend() {
  each([&](Saved& one) {
    auto request = client.node().suspendRequest();
    request.setSession(reader("id:" + one.session.id));
    request.setDirectory(reader(one.snapshot));
    request.setProgress(kj::heap<ProgressLine>("save"));
    request.setTimeoutSeconds(options.timeoutSeconds);
    request.setWithMachine(one.session.sharesMemory());
    return request.send().then(
        [&one](capnp::Response<control::Node::SuspendResults>&& results) { note(one, results.getReport()); });
  });
}

void SavedSessions::takeBack() {
  std::erase_if(all, [](const Saved& one) { return !fs::exists(one.snapshot + "/" + snapshot::manifestFile); });
  resume();
}

void SavedSessions::giveUp() {
  letGo();
  std::erase_if(all, [](const Saved& one) { return one.session.sharesMemory(); });
}

void SavedSessions::letGo() {
  each([&](Saved& one) -> kj::Promise<void> {
    if (!one.session.sharesMemory()) return kj::READY_NOW;
    auto request = client.node().parkRequest();
    request.setSession(reader("id:" + one.session.id));
    return request.send().ignoreResult();
  });
}

void SavedSessions::prepare() {
  letGoOfFormer();
  each([&](Saved& one) -> kj::Promise<void> {
    if (!one.session.sharesMemory()) return kj::READY_NOW;
    auto request = client.node().receiveRequest();
    describe(one.session, request.initSession());
    request.setSnapshotVersion(snapshot::snapshotVersion);
    request.setIsElsewhere(true);
    return request.send().then([&one](capnp::Response<control::Node::ReceiveResults>&& results) {
      auto restore = one.arrival.emplace(results.getArrival()).restoreRequest();
      restore.setProgress(kj::heap<ProgressLine>("restore"));
      restore.setDirectory(reader(one.snapshot));
      return restore.send().ignoreResult();
    });
  });
}

void SavedSessions::resume() {
  each([&](Saved& one) -> kj::Promise<void> {
    KJ_IF_MAYBE (arrival, one.arrival) {
      return arrival->completeRequest().send().then(
          [&one](capnp::Response<control::Arrival::CompleteResults>&& results) { note(one, results.getReport()); });
    }
    auto request = client.node().resumeRequest();
    request.setDirectory(reader(one.snapshot));
    request.setProgress(kj::heap<ProgressLine>("restore"));
    return request.send().then(
        [&one](capnp::Response<control::Node::ResumeResults>&& results) { note(one, results.getReport()); });
  });
}

std::string SavedSessions::problem() const {
  for (auto& one : all)
    if (!one.isDone) return one.session.id + ": " + one.problem;
  return "";
}

void SavedSessions::print(const char* what) const {
  if (options.json) {
    json list = json::array();
    for (auto& one : all)
      list.push_back({{"session", one.session.id},
                      {"name", one.session.name},
                      {"snapshot", one.snapshot},
                      {"seconds", one.seconds},
                      {"onGpuSeconds", one.onGpuSeconds},
                      {"problem", one.isDone ? json(nullptr) : json(one.problem)}});
    return printJson(list);
  }
  for (auto& one : all) {
    const std::string who = one.session.id + " (" + printable(one.session.name) + ")";
    if (one.isDone)
      fmt::print("{} {} in {:.3f} s, {:.3f} s of it for its GPU\n", who, what, one.seconds, one.onGpuSeconds);
    else
      fmt::print("{} does not run: {}\n", who, one.problem);
  }
}

void SavedSessions::note(Saved& one, control::Report::Reader report) {
  one.seconds = one.onGpuSeconds = report.getSeconds();
  // Excludes the phases that depend on the program, which answers over the machine's network, or on the machine.
  for (auto phase : report.getPhases())
    for (const char* its : {"gate", "program", "machine", "handover"})
      if (phase.getName() == its) one.onGpuSeconds -= phase.getSeconds();
}

// Releases what an interrupted earlier `machine save` has left here: the sessions' machine is in the folder.
void SavedSessions::letGoOfFormer() {
  auto listed = client.wait(client.node().listRequest().send());
  for (auto session : listed.getSessions()) {
    const bool isOurs = std::ranges::any_of(
        all, [&](const Saved& one) { return one.session.sharesMemory() && session.getId() == one.session.id.c_str(); });
    if (!isOurs || session.getState() != control::State::SUSPENDED || session.getPlace().getGuest().size() == 0) continue;
    auto request = client.node().parkRequest();
    request.setSession(reader("id:" + std::string(session.getId())));
    client.wait(untilSignal(client, request.send().ignoreResult()));
  }
}

void SavedSessions::describe(const MachineSession& session, control::SessionInfo::Builder info) const {
  info.setId(reader(session.id));
  info.setName(reader(session.name));
  info.setProgram(reader(session.program));
  info.setPid(session.pid);
  auto place = info.initPlace();
  place.setGuest(reader(options.guest.empty() ? session.guest : options.guest));
  place.setSlot(session.slot);
  place.setClaim(session.claim);
  place.setFileBytes(session.fileBytes);
}

}  // namespace vgpu::ctl
