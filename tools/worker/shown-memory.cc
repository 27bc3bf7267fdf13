#include "tools/worker/shown-memory.h"

#include <kj/exception.h>
#include <spdlog/spdlog.h>

#include "vgpu/control/channel.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::stub {
namespace {

// Longer than any working worker needs; without an answer, a resume only takes longer.
ControlChannel::Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(2); }

}  // namespace

void sendShown(kj::AutoCloseFd socket, const std::vector<checkpoint::TwinMemory>& memory) {
  ControlChannel channel(kj::mv(socket));
  KJ_IF_MAYBE (failure, kj::runCatchingExceptions([&] {
                 for (auto& [gpu, shown] : memory) {
                   capnp::MallocMessageBuilder message;
                   auto root = message.initRoot<control::ShownMemory>();
                   root.setGpu(gpu);
                   root.setAddress(shown.address);
                   root.setBytes(shown.bytes);
                   const int descriptor = shown.descriptor;
                   channel.send(message, {&descriptor, 1}, soon());
                 }
               })) {
    spdlog::info("device memory cannot be shared with another worker: {}", failure->getDescription().cStr());
  }
}

std::vector<checkpoint::TwinMemory> receiveShown(kj::AutoCloseFd socket) {
  ControlChannel channel(kj::mv(socket));
  std::vector<checkpoint::TwinMemory> all;
  KJ_IF_MAYBE (failure, kj::runCatchingExceptions([&] {
                 while (auto message = channel.receive(1, soon())) {
                   if (message->descriptors.size() != 1 || all.size() == checkpoint::mostTwinMemory) return;
                   auto root = message->reader->getRoot<control::ShownMemory>();
                   all.push_back({root.getGpu(), {root.getAddress(), root.getBytes(), kj::mv(message->descriptors.front())}});
                 }
               })) {
    spdlog::info("another worker does not share its device memory: {}", failure->getDescription().cStr());
  }
  return all;
}

}  // namespace vgpu::stub
