#include "checkpoint/explain.h"

#include <fmt/format.h>
#include <kj/exception.h>

#include <chrono>

#include "stub/worker/execution.h"
#include "stub/worker/kinds/kind.h"

namespace vgpu::checkpoint {

namespace {

// A thread that does not finish its frame within this time is in a long driver call.
constexpr auto stopLimit = std::chrono::milliseconds(500);

void addWork(stub::SessionState& on, unsigned device, std::vector<Obstacle>& obstacles) {
  if (on.isEnded(device)) return;
  CUresult state = on.select(device).gpu.query();
  if (state == CUDA_SUCCESS) return;
  if (state != CUDA_ERROR_NOT_READY) {
    std::string why = fmt::format("its work has failed: {}", stub::nameOf(on.driver, state));
    obstacles.push_back({true, fmt::format("device {}", device), why});
    return;
  }
  std::string kernel = on.busyKernel(device);
  std::string object = kernel.empty() ? fmt::format("device {}", device) : "kernel " + kernel;
  std::string why =
      fmt::format("device {} is executing it; a suspend waits until it has ended, for at most as long as --timeout says", device);
  obstacles.push_back({false, object, why});
}

void addSlowCall(stub::SessionState& on, unsigned device, std::vector<Obstacle>& obstacles) {
  auto& slow = on.select(device).slow;
  if (slow.isEmpty() || slow.finish(std::chrono::milliseconds(0))) return;
  obstacles.push_back({false, fmt::format("call {}", slow.first()),
                       "it is compiling, loading or registering something; a suspend waits until it has returned"});
}

// Adds the obstacles that the kind's objects report; if the kind cannot be saved for another reason, adds that of the first object.
void addKind(stub::SessionState& on, const stub::KindModule& kind, Explanation& found) {
  size_t before = found.obstacles.size();
  if (kind.obstacles != nullptr)
    kind.obstacles(on, [&](const std::string& object, const std::string& why) {
      found.obstacles.push_back({true, object, why});
    });
  if (kind.save == nullptr || found.obstacles.size() > before) return;
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] {
                 for (auto& row : kind.save(on))
                   if (kind.bytes != nullptr) found.deviceBytes += kind.bytes(row);
               })) {
    found.obstacles.push_back({true, fmt::format("state {}", kind.name), exception->getDescription().cStr()});
  }
}

}  // namespace

Explanation explain(stub::Worker& worker) {
  Explanation found;
  bool isStopped = worker.interlude(false, stopLimit, [&](stub::SessionState& on) {
    for (unsigned device : on.usedDevices()) addWork(on, device, found.obstacles);
    for (unsigned device : on.usedDevices()) addSlowCall(on, device, found.obstacles);
    for (auto* kind : stub::kinds()) addKind(on, *kind, found);
  });
  if (isStopped) return found;
  for (auto& name : worker.executing())
    found.obstacles.push_back(
        {false, "call " + name,
         "it has been in the driver for half a second, perhaps because the GPU's queue is full; a suspend waits until it has returned"});
  return found;
}

}  // namespace vgpu::checkpoint
