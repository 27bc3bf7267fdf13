// ps and explain: queries to a daemon.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/common/node-client.h"
#include "tools/common/printable.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"
#include "tools/vgpuctl/snapshot-info.h"
#include "vgpu/control/text.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;

// How many module images the program has loaded, and how many of them it had to send: "1 of 3 sent".
std::string imagesOf(control::SessionInfo::Reader session) {
  auto images = session.getImages();
  if (session.getWorkerPid() == 0) return "-";
  return fmt::format("{} of {} sent", images.getSent(), images.getSent() + images.getFound());
}

// For a session that is suspended to the memory of a node on this host: the progress of writing it to disk.
std::string writingFor(const NodeAddress& address, control::SessionInfo::Reader session) {
  bool mayBe = !address.remote && session.getState() == control::State::SUSPENDED;
  return mayBe ? writingOf(session.getSnapshot().cStr()) : "";
}

}  // namespace

int listSessions(const NodeAddress& address, bool asJson) {
  NodeClient client(address);
  auto answer = client.wait(client.node().listRequest().send());
  auto sessions = answer.getSessions();
  if (asJson) {
    json array = json::array();
    for (auto session : sessions) {
      array.push_back(sessionJson(session));
      if (!address.remote) array.back()["writing"] = writingJson(session.getSnapshot().cStr());
    }
    printJson(array);
    return 0;
  }
  constexpr const char* row = "{:<9} {:<16} {:>8} {:<11} {:<12} {:<12} {}\n";
  fmt::print(row, "SESSION", "NAME", "PID", "STATE", "DEVICE", "IMAGES", "PROGRAM");
  for (auto session : sessions) {
    fmt::print(row, session.getId().cStr(), printable(session.getName().cStr()), session.getPid(), stateName(session.getState()),
               session.getDevice().size() == 0 ? "-" : session.getDevice().cStr(), imagesOf(session),
               printable(session.getProgram().cStr()) + writingFor(address, session));
  }
  return 0;
}

int listWorkers(const NodeAddress& address, bool asJson) {
  NodeClient client(address);
  auto answer = client.wait(client.node().workersRequest().send());
  json array = json::array();
  constexpr const char* row = "{:>8} {:<9} {:>12} {:>12}\n";
  if (!asJson) fmt::print(row, "PID", "SESSION", "HOST MEMORY", "GPU MEMORY");
  for (auto worker : answer.getWorkers()) {
    std::string session = worker.getSession();
    if (asJson) {
      array.push_back({{"pid", worker.getPid()},
                       {"session", session.empty() ? json(nullptr) : json(session)},
                       {"used", worker.getUsed()},
                       {"hostBytes", worker.getHostBytes()},
                       {"gpuBytes", worker.getGpuKnown() ? json(worker.getGpuBytes()) : json(nullptr)}});
    } else {
      fmt::print(row, worker.getPid(), !session.empty() ? session : worker.getUsed() ? "(used)" : "(warm)", humanBytes(worker.getHostBytes()),
                 worker.getGpuKnown() ? humanBytes(worker.getGpuBytes()) : "unknown");
    }
  }
  if (asJson) printJson(array);
  return 0;
}

int explainSession(const NodeAddress& address, const std::string& session, bool asJson) {
  NodeClient client(address);
  auto request = client.node().explainRequest();
  request.setSession(reader(session));
  auto answer = client.wait(request.send());
  bool isRefused = false;
  json obstacles = json::array();
  for (auto obstacle : answer.getObstacles()) {
    isRefused |= obstacle.getRefuses();
    if (asJson)
      obstacles.push_back({{"refuses", obstacle.getRefuses()},
                           {"object", obstacle.getObject().cStr()},
                           {"why", obstacle.getWhy().cStr()}});
    else
      fmt::print("{} {}: {}\n", obstacle.getRefuses() ? "refused" : "delayed", printable(obstacle.getObject().cStr()),
                 printable(obstacle.getWhy().cStr()));
  }
  if (asJson)
    printJson({{"refused", isRefused}, {"obstacles", obstacles}, {"deviceBytes", answer.getDeviceBytes()}});
  else
    fmt::print("a suspend of {} would {}: {} of device memory\n", printable(session), isRefused ? "be refused" : "succeed",
               humanBytes(answer.getDeviceBytes()));
  return isRefused ? 1 : 0;
}

}  // namespace vgpu::ctl
