// ps, suspend and resume: what vgpuctl asks of a daemon.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/common/node-client.h"
#include "tools/common/printable.h"
#include "tools/common/snapshot-store.h"
#include "tools/vgpuctl/arguments.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/text.h"
#include "vgpu/store/chunk-store.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;

std::string absolute(const std::string& path) { return std::filesystem::absolute(path).lexically_normal().string(); }

json toJson(control::Report::Reader report) {
  json phases = json::array();  // in their order
  for (auto phase : report.getPhases()) phases.push_back({{"name", phase.getName().cStr()}, {"seconds", phase.getSeconds()}});
  return {{"seconds", report.getSeconds()},
          {"gateSeconds", report.getGateSeconds()},
          {"deviceBytes", report.getDeviceBytes()},
          {"storedBytes", report.getStoredBytes()},
          {"objects", report.getObjects()},
          {"pendingCalls", report.getPendingCalls()},
          {"memoryBytes", report.getMemoryBytes()},
          {"copiedBytes", report.getCopiedBytes()},
          {"phases", phases}};
}

// Where a session goes in the store: as `name`, or as the person called the session. Of `session`, "name:app" is "app".
std::string inStore(const std::string& session, const std::string& name) {
  requireSoundStore(snapshotStore());
  return unusedSnapshot(ChunkStore(snapshotStore()), name, session.substr(session.find(':') + 1));
}

std::string directoryOf(const std::string& snapshot) {
  if (snapshot.find('/') != snapshot.npos || std::filesystem::is_directory(snapshot)) return absolute(snapshot);
  std::string stored = ChunkStore::directoryOf(snapshotStore(), snapshot);
  if (!std::filesystem::is_directory(stored))
    fail(fmt::format("there is no snapshot {0}: the store has none of that name ({1}), and no directory here is called {0}", snapshot, stored));
  requireSoundStore(snapshotStore());
  return stored;
}

std::string summary(control::Report::Reader report) {
  uint64_t memoryBytes = report.getMemoryBytes();
  std::string pinned = memoryBytes == 0 ? "" : fmt::format("{} in pinned memory, ", humanBytes(memoryBytes));
  return fmt::format("{} of device memory, {}{} on disk, {} objects, {} waiting calls, {:.3f} s",
                     humanBytes(report.getDeviceBytes()), pinned, humanBytes(report.getStoredBytes()), report.getObjects(),
                     report.getPendingCalls(), report.getSeconds());
}

// How many module images the program had, and how many of them travelled: "1 of 3 sent".
std::string imagesOf(control::SessionInfo::Reader session) {
  auto images = session.getImages();
  if (session.getWorkerPid() == 0) return "-";
  return fmt::format("{} of {} sent", images.getSent(), images.getSent() + images.getFound());
}

}  // namespace

int listSessions(const NodeAddress& address, bool asJson) {
  NodeClient client(address);
  auto answer = client.wait(client.node().listRequest().send());
  auto sessions = answer.getSessions();
  if (asJson) {
    json array = json::array();
    for (auto session : sessions) array.push_back(sessionJson(session));
    printJson(array);
    return 0;
  }
  constexpr const char* row = "{:<9} {:<16} {:>8} {:<11} {:<12} {:<12} {}\n";
  fmt::print(row, "SESSION", "NAME", "PID", "STATE", "DEVICE", "IMAGES", "PROGRAM");
  for (auto session : sessions) {
    fmt::print(row, session.getId().cStr(), printable(session.getName().cStr()), session.getPid(),
               stateName(session.getState()), session.getDevice().size() == 0 ? "-" : session.getDevice().cStr(),
               imagesOf(session), printable(session.getProgram().cStr()));
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

int suspendSession(const NodeAddress& address, const SuspendOptions& options) {
  bool toMemory = options.directory == inMemory;
  bool isInStore = options.directory.empty() || toMemory;
  std::string target = isInStore ? inStore(options.session, options.name) : absolute(options.directory);
  NodeClient client(address);
  auto request = client.node().suspendRequest();
  request.setSession(reader(options.session));
  request.setDirectory(reader(target));
  request.setProgress(kj::heap<ProgressLine>("suspend"));
  request.setTimeoutSeconds(options.timeoutSeconds);
  request.setMemory(toMemory ? control::Memory::ONLY : options.inBackground ? control::Memory::FIRST : control::Memory::NONE);
  auto sent = request.send();
  faultPoint("suspend.asked");
  auto answer = client.wait(kj::mv(sent));
  auto report = answer.getReport();
  if (options.json) {
    json result = toJson(report);
    result["directory"] = target;
    printJson(result);
  } else {
    const char* place = toMemory ? "memory, as " : options.inBackground ? "memory, and is being written to " : "";
    fmt::print("{} is suspended to {}{}: {} ({:.3f} s until its worker was quiesced)\n", printable(options.session), place,
               target, summary(report), report.getGateSeconds());
  }
  return 0;
}

int snapshotSession(const NodeAddress& address, const SuspendOptions& options) {
  std::string target = options.directory.empty() ? inStore(options.session, options.name) : absolute(options.directory);
  NodeClient client(address);
  auto request = client.node().snapshotRequest();
  request.setSession(reader(options.session));
  request.setDirectory(reader(target));
  request.setProgress(kj::heap<ProgressLine>("snapshot"));
  request.setTimeoutSeconds(options.timeoutSeconds);
  auto sent = request.send();
  faultPoint("snapshot.asked");
  auto answer = client.wait(kj::mv(sent));
  auto report = answer.getReport();
  if (options.json) {
    json result = toJson(report);
    result.update({{"directory", target},
                   {"rounds", report.getRounds()},
                   {"roundBytes", report.getRoundBytes()},
                   {"heldBytes", report.getHeldBytes()}});
    printJson(result);
  } else {
    fmt::print("{} has a snapshot in {}: {}; {} in {} rounds while it ran, {} while it was held for {:.3f} s\n",
               printable(options.session), target, summary(report), humanBytes(report.getRoundBytes()), report.getRounds(),
               humanBytes(report.getHeldBytes()), report.getGateSeconds());
  }
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
    fmt::print("a suspend of {} would {}: {} of device memory\n", printable(session), isRefused ? "be refused" : "be made",
               humanBytes(answer.getDeviceBytes()));
  return isRefused ? 1 : 0;
}

int resumeSession(const NodeAddress& address, const std::string& directory, const std::string& devices, bool asJson) {
  auto map = parseDeviceMap(devices);
  std::string source = directoryOf(directory);
  NodeClient client(address);
  auto request = client.node().resumeRequest();
  request.setDirectory(reader(source));
  request.setDevices(kj::arrayPtr(map.data(), map.size()));
  request.setProgress(kj::heap<ProgressLine>("resume"));
  auto sent = request.send();
  faultPoint("resume.asked");
  auto answer = client.wait(kj::mv(sent));
  auto session = answer.getSession();
  if (asJson) {
    json result = toJson(answer.getReport());
    result["session"] = sessionJson(session);
    printJson(result);
  } else {
    fmt::print("{} ({}, pid {}) runs again on {}: {}\n", session.getId().cStr(), printable(session.getName().cStr()),
               session.getPid(), session.getDevice().cStr(), summary(answer.getReport()));
  }
  return 0;
}

}  // namespace vgpu::ctl
