#include "tools/relay/lane-thread.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>

#include "tools/relay/node-connection.h"
#include "vgpu/base/sizes.h"

namespace vgpu::relay {
namespace {

constexpr unsigned usualLanes = 8, mostLanes = 16;
constexpr uint64_t usualFrom = 16 * MiB;

}  // namespace

// Leaves one core to the program, if there are several.
LaneWish laneWish() {
  const char* wish = std::getenv("VGPU_LINK_CONNECTIONS");
  if (wish == nullptr) return {std::clamp(std::thread::hardware_concurrency() / 2, 1u, usualLanes), usualFrom};
  return {static_cast<unsigned>(std::clamp(std::strtol(wish, nullptr, 10), 0l, static_cast<long>(mostLanes))), 0};
}

void startLane(kj::AutoCloseFd relay, const MemoryFile& segment, const Endpoint& node, const Greeting& greeting) {
  auto lane = std::make_unique<Lane>(kj::mv(relay), segment);
  std::thread([lane = std::move(lane), node, greeting] { lane->run([&] { return reachNode(node, greeting).stream; }); }).detach();
}

}  // namespace vgpu::relay
