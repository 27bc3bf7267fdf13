// Helpers for the program's ends of control connections: texts, files, and time limits for the peer.
#pragma once

#include <capnp/message.h>

#include <chrono>
#include <string>

#include "intercept/session/given-files.h"
#include "vgpu/control/channel.h"
#include "vgpu/control/control.capnp.h"
#include "vgpu/control/text.h"

namespace vgpu::client {

// The time limit for the rest of a message that a peer has begun to send.
constexpr std::chrono::seconds messageLimit{10};

inline std::chrono::steady_clock::time_point within(std::chrono::seconds limit) {
  return std::chrono::steady_clock::now() + limit;
}

inline std::string text(capnp::Text::Reader reader) { return {reader.begin(), reader.size()}; }

// Sends the control::ToNode message that `fill` sets, together with file descriptors.
template <typename Fill>
void send(ControlChannel& channel, Fill&& fill, kj::ArrayPtr<const int> descriptors = nullptr) {
  capnp::MallocMessageBuilder builder;
  fill(builder.initRoot<control::ToNode>());
  channel.send(builder, descriptors, within(messageLimit));
}

inline capnp::Data::Reader bytesOf(const SharedName& name) {
  return {static_cast<const kj::byte*>(static_cast<const void*>(&name)), sizeof name};
}

inline void give(ControlChannel& channel, const GivenFile& file) {
  const int fd = file.fd();
  send(channel, [&](control::ToNode::Builder message) { message.setGive(bytesOf(file.name)); }, kj::arrayPtr(&fd, 1));
}

inline void takeBack(ControlChannel& channel, const SharedName& name) {
  send(channel, [&](control::ToNode::Builder message) { message.setTakeBack(bytesOf(name)); });
}

}  // namespace vgpu::client
