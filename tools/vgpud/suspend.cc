#include "tools/vgpud/suspend.h"

#include "tools/vgpud/suspension.h"

namespace vgpu::daemon {

void OperationReport::end(const char* phase) {
  clock.end(phase);
  for (auto& [name, seconds] : clock.take()) phases.emplace_back(name, seconds);
}

// The part of the phase that the report does not explain is the time for messages.
void OperationReport::takePhases(control::Report::Reader from, const char* phase, const std::string& where) {
  clock.end(phase);
  double rest = clock.take().at(0).second;
  for (auto one : from.getPhases()) {
    phases.emplace_back(where + one.getName().cStr(), one.getSeconds());
    rest -= one.getSeconds();
  }
  phases.emplace_back(phase, std::max(rest, 0.0));
}

void OperationReport::take(control::Report::Reader from, const char* phase) {
  takePhases(from, phase);
  copiedBytes = from.getCopiedBytes();
  deviceBytes = from.getDeviceBytes();
  storedBytes = from.getStoredBytes();
  objects = from.getObjects();
  pendingCalls = from.getPendingCalls();
  rounds = from.getRounds();
  roundBytes = from.getRoundBytes();
  heldBytes = from.getHeldBytes();
  twinBytes = from.getTwinBytes();
  aheadObjects = from.getAheadObjects();
}

void OperationReport::give(control::Report::Builder to) const {
  to.setSeconds(seconds);
  to.setGateSeconds(gateSeconds);
  to.setDeviceBytes(deviceBytes);
  to.setStoredBytes(storedBytes);
  to.setObjects(objects);
  to.setPendingCalls(pendingCalls);
  to.setMemoryBytes(memoryBytes);
  to.setRounds(rounds);
  to.setRoundBytes(roundBytes);
  to.setHeldBytes(heldBytes);
  to.setCopiedBytes(copiedBytes);
  to.setTwinBytes(twinBytes);
  to.setAheadObjects(aheadObjects);
  auto list = to.initPhases(static_cast<unsigned>(phases.size()));
  for (unsigned i = 0; i < phases.size(); ++i) {
    list[i].setName(phases[i].first.c_str());
    list[i].setSeconds(phases[i].second);
  }
}

kj::Promise<OperationReport> suspend(Sessions& sessions, Session& session, std::string directory,
                                     control::Progress::Client progress, unsigned timeoutSeconds, control::Memory memory) {
  session.requireIdle();
  auto suspension = kj::heap<Suspension>(sessions, session, std::move(directory), kj::mv(progress), timeoutSeconds, memory);
  auto work = suspension->openFolder().then([&suspension = *suspension] { return suspension.run(); });
  return session.exclusively(work.attach(kj::mv(suspension)));
}

}  // namespace vgpu::daemon
