#include "tools/vgpuctl/node-resume.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "checkpoint/process/survey.h"
#include "tools/common/node-client.h"
#include "tools/common/printable.h"
#include "tools/vgpuctl/operation.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"
#include "tools/vgpuctl/snapshot-info.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/control/text.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;
using snapshot::ProcessPart;

void print(control::SessionInfo::Reader session, bool isCopy, const std::string& how) {
  fmt::print("{} ({}, pid {}) {} on {}{}\n", session.getId().cStr(), printable(session.getName().cStr()), session.getPid(),
             isCopy ? "is a copy, and runs" : "runs again", session.getDevice().cStr(), how);
}

}  // namespace

void resumeInNode(const Resume& resume, const std::vector<std::string>& others, const std::vector<pid_t>& copies) {
  NodeClient client(resume.address);
  auto request = client.node().resumeRequest();
  request.setDirectory(reader(resume.directory));
  request.setDevices(kj::arrayPtr(resume.devices.data(), resume.devices.size()));
  request.setProgress(kj::heap<ProgressLine>("resume"));
  auto list = request.initOthers(static_cast<unsigned>(others.size()));
  for (unsigned i = 0; i < others.size(); ++i) list.set(i, reader(snapshot::sessionFolderOf(resume.directory, others[i])));
  request.setCopies(kj::arrayPtr(copies.data(), copies.size()));
  auto sent = request.send();
  faultPoint("resume.asked");
  auto answer = client.wait(kj::mv(sent));
  if (resume.json) {
    json result = reportJson(answer.getReport()), more = json::array();
    for (auto other : answer.getOthers()) more.push_back(sessionJson(other));
    result["session"] = sessionJson(answer.getSession());
    result["others"] = more;
    printJson(result);
  } else {
    print(answer.getSession(), !copies.empty(), ": " + summary(answer.getReport()));
    for (auto other : answer.getOthers()) print(other, !copies.empty(), "");
  }
}

std::vector<std::string> othersOf(const ProcessPart& part) {
  std::vector<std::string> others;
  for (auto& one : part.sessions) others.push_back(one.session);
  return others;
}

ProcessPart requireSound(const Resume& resume, const snapshot::Header& header) {
  if (resume.address.remote) fail("a process is restored on the machine of its node: run vgpuctl there, and name the node by its unix "
                                  "socket");
  ProcessPart part = snapshot::readProcessPart(resume.directory, *header.process);
  {
    DoneLine progress("verify the process", header.process->imageBytes);
    snapshot::verifyImages(resume.directory, part, [&](uint64_t bytes) { progress.add(bytes); });
  }
  snapshot::verifySessions(resume.directory, part);
  verifyFiles(resume.directory);
  for (auto& session : othersOf(part)) verifyFiles(snapshot::sessionFolderOf(resume.directory, session));
  process::requireSameFiles(part);
  return part;
}

}  // namespace vgpu::ctl
