// Conversions between the worker's interfaces and the work thread.
#pragma once

#include <unistd.h>

#include <memory>
#include <string>

#include "checkpoint/snapshot.h"
#include "tools/worker/progress-relay.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::stub {

struct Done {};  // the result of work without a result

inline std::string textOf(capnp::Text::Reader reader) { return {reader.begin(), reader.size()}; }

inline snapshot::Identity identityOf(control::SessionInfo::Reader session, capnp::Text::Reader reattach) {
  std::vector<std::string> sharesWith;
  for (auto other : session.getSharesWith()) sharesWith.push_back(textOf(other));
  return {textOf(session.getId()), textOf(session.getName()), textOf(session.getProgram()), session.getPid(), geteuid(),
          textOf(reattach),        std::move(sharesWith)};
}

inline void give(const checkpoint::Report& from, control::Report::Builder to) {
  to.setDeviceBytes(from.deviceBytes);
  to.setStoredBytes(from.storedBytes);
  to.setObjects(from.objects);
  to.setPendingCalls(from.pendingCalls);
  to.setRounds(from.rounds);
  to.setRoundBytes(from.roundBytes);
  to.setHeldBytes(from.heldBytes);
  to.setCopiedBytes(from.copiedBytes);
  to.setTwinBytes(from.twinBytes);
  to.setAheadObjects(from.aheadObjects);
  auto phases = to.initPhases(static_cast<unsigned>(from.phases.size()));
  for (unsigned i = 0; i < from.phases.size(); ++i) {
    phases[i].setName(from.phases[i].first.c_str());
    phases[i].setSeconds(from.phases[i].second);
  }
}

inline checkpoint::Progress progressTo(const std::shared_ptr<ProgressRelay>& relay) {
  return [relay](const char* phase, uint64_t doneBytes, uint64_t totalBytes) { relay->report(phase, doneBytes, totalBytes); };
}

}  // namespace vgpu::stub
