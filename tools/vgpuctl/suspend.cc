// suspend and snapshot, made by a daemon.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/common/node-client.h"
#include "tools/common/printable.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/operation.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/text.h"

namespace vgpu::ctl {

using nlohmann::json;

int suspendSession(const NodeAddress& address, const SuspendOptions& options) {
  if (options.withProcess) return saveWithProcess(address, options, false);
  bool toMemory = options.directory == inMemory;
  const NewSnapshot reserved = targetOf(options);
  const std::string& target = reserved.path();
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
    json result = reportJson(report);
    result["directory"] = target;
    json others = json::array();
    for (auto other : answer.getOthers()) {
      others.push_back(reportJson(other.getReport()));
      others.back()["session"] = other.getSession().getId().cStr();
      others.back()["directory"] = other.getSession().getSnapshot().cStr();
    }
    result["others"] = others;
    printJson(result);
  } else {
    const char* place = toMemory ? "memory, as " : options.inBackground ? "memory, and is being written to " : "";
    fmt::print("{} is suspended to {}{}: {} ({:.3f} s until its worker was quiesced)\n", printable(options.session), place,
               target, summary(report), report.getGateSeconds());
    for (auto other : answer.getOthers())
      fmt::print("  with {} ({}, pid {}), which shares with it: {}\n", other.getSession().getId().cStr(),
                 printable(other.getSession().getName().cStr()), other.getSession().getPid(), summary(other.getReport()));
  }
  return 0;
}

int snapshotSession(const NodeAddress& address, const SuspendOptions& options) {
  if (options.withProcess) return saveWithProcess(address, options, true);
  const NewSnapshot reserved = targetOf(options);
  const std::string& target = reserved.path();
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
    json result = reportJson(report);
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

}  // namespace vgpu::ctl
