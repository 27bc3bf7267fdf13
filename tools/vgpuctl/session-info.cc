#include "tools/vgpuctl/session-info.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace vgpu::ctl {

const char* stateName(control::State state) {
  switch (state) {
    case control::State::RUNNING:
      return "running";
    case control::State::SUSPENDING:
      return "suspending";
    case control::State::SUSPENDED:
      return "suspended";
    case control::State::RESUMING:
      return "resuming";
    case control::State::LOST:
      return "lost";
  }
  return "unknown";
}

nlohmann::json sessionJson(control::SessionInfo::Reader session) {
  auto images = session.getImages();
  auto launches = session.getLaunches();
  return {{"session", session.getId().cStr()},
          {"name", session.getName().cStr()},
          {"pid", session.getPid()},
          {"state", stateName(session.getState())},
          {"device", session.getDevice().cStr()},
          {"program", session.getProgram().cStr()},
          {"directory", session.getDirectory().cStr()},
          {"workerPid", session.getWorkerPid()},
          {"snapshot", session.getSnapshot().cStr()},
          {"openedSeconds", session.getOpenedSeconds()},
          {"images",
           {{"sent", images.getSent()},
            {"sentBytes", images.getSentBytes()},
            {"found", images.getFound()},
            {"foundBytes", images.getFoundBytes()}}},
          {"launches", {{"all", launches.getAll()}, {"folded", launches.getFolded()}}}};
}

void printJson(const nlohmann::json& value) {
  fmt::print("{}\n", value.dump(2, ' ', true, nlohmann::json::error_handler_t::replace));
}

}  // namespace vgpu::ctl
