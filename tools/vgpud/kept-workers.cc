#include "tools/vgpud/kept-workers.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "tools/vgpud/worker-pool.h"

namespace vgpu::daemon {

void KeptWorkers::keep(std::string snapshot, std::string session, kj::Own<WorkerProcess> worker) {
  workers.push_back({std::move(snapshot), std::move(session), kj::mv(worker)});
}

kj::Maybe<kj::Own<WorkerProcess>> KeptWorkers::take(const std::string& snapshot) {
  auto found = std::ranges::find(workers, snapshot, &Kept::snapshot);
  if (found == workers.end()) return nullptr;
  auto worker = kj::mv(found->worker);
  workers.erase(found);
  return kj::mv(worker);
}

kj::Promise<void> KeptWorkers::drop(const std::string& snapshot) {
  auto taken = take(snapshot);
  KJ_IF_MAYBE (worker, taken) return pool.retire(kj::mv(*worker));
  return kj::READY_NOW;
}

kj::Promise<bool> KeptWorkers::freeOldest() {
  if (workers.empty()) return false;
  spdlog::info("session {} leaves the GPU to others; its snapshot is in memory", workers.front().session);
  return drop(std::string(workers.front().snapshot)).then([] { return true; });
}

}  // namespace vgpu::daemon
