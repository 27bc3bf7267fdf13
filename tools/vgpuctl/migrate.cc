// migrate: moves a session to another node while its program runs.
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

int migrateSession(const NodeAddress& address, const MigrateOptions& options) {
  NodeAddress target = resolveNode(options.target);
  const std::string where = target.remote ? target.remote->text() : target.directory;
  NodeClient client(address);
  auto request = client.node().migrateRequest();
  request.setSession(options.session);
  request.setTarget(reader(where));
  request.setDowntimeSeconds(options.downtimeMilliseconds / 1e3);
  request.setTimeoutSeconds(options.timeoutSeconds);
  request.setProgress(kj::heap<ProgressLine>("migrate"));
  auto sent = request.send();
  faultPoint("migrate.asked");
  auto answer = client.wait(kj::mv(sent));
  auto report = answer.getReport();
  if (options.json) {
    printJson({{"device", answer.getSession().getDevice().cStr()},
               {"node", where},
               {"seconds", report.getSeconds()},
               {"blackoutSeconds", report.getGateSeconds()},
               {"deviceBytes", report.getDeviceBytes()},
               {"objects", report.getObjects()},
               {"aheadObjects", report.getAheadObjects()},
               {"rounds", report.getRounds()},
               {"roundBytes", report.getRoundBytes()},
               {"heldBytes", report.getHeldBytes()},
               {"phases", phasesJson(report)}});
  } else {
    fmt::print(
        "{} runs on {} of {}: {} of device memory, {} in {} rounds while it ran, {} while it was held for {:.3f} s; {:.3f} s in "
        "all\n",
        printable(options.session), answer.getSession().getDevice().cStr(), where, humanBytes(report.getDeviceBytes()),
        humanBytes(report.getRoundBytes()), report.getRounds(), humanBytes(report.getHeldBytes()), report.getGateSeconds(),
        report.getSeconds());
  }
  return 0;
}

}  // namespace vgpu::ctl
