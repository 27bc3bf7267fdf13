#include "tools/worker/exchange-relay.h"

#include <kj/debug.h>

#include <cstring>
#include <utility>

#include "tools/common/cross-thread.h"
#include "tools/common/descriptor.h"

namespace vgpu::stub {
namespace {

template <typename Bytes>
capnp::Data::Reader dataOf(const Bytes& bytes) {
  return {static_cast<const kj::byte*>(static_cast<const void*>(bytes.data())), bytes.size()};
}

capnp::Data::Reader dataOf(const SharedName& name) {
  return {static_cast<const kj::byte*>(static_cast<const void*>(&name)), sizeof name};
}

void write(control::SharedObject::Builder to, const SharedObject& object) {
  to.setKind(static_cast<uint32_t>(object.kind));
  to.setDevice(dataOf(object.device));
  to.setBytes(object.bytes);
  to.setOffset(object.offset);
  to.setSize(object.size);
  to.setContent(dataOf(object.content));
  auto parts = to.initParts(static_cast<unsigned>(object.parts.size()));
  for (unsigned i = 0; i < object.parts.size(); ++i) parts.set(i, object.parts[i]);
}

SharedObject read(control::SharedObject::Reader from) {
  SharedObject object{.kind = static_cast<api::Kind>(from.getKind()),
                      .bytes = from.getBytes(),
                      .offset = from.getOffset(),
                      .size = from.getSize()};
  auto device = from.getDevice();
  if (device.size() == object.device.size()) std::memcpy(object.device.data(), device.begin(), device.size());
  for (kj::byte each : from.getContent()) object.content.push_back(std::byte{each});
  for (uint64_t bytes : from.getParts()) object.parts.push_back(bytes);
  return object;
}

}  // namespace

std::set<SharedName> namesIn(capnp::List<capnp::Data>::Reader names) {
  std::set<SharedName> all;
  for (auto each : names) {
    SharedName name;
    KJ_REQUIRE(each.size() == sizeof name, "the name of a shared object is invalid");
    std::memcpy(&name, each.begin(), sizeof name);
    all.insert(name);
  }
  return all;
}

ExchangeRelay::ExchangeRelay(control::Exchange::Client exchange)
    : client(kj::heap(kj::mv(exchange))), loop(kj::getCurrentThreadExecutor().addRef()) {}

ExchangeRelay::~ExchangeRelay() noexcept { destroyOn(*loop, kj::mv(client)); }

bool ExchangeRelay::publish(const SharedName& name, const SharedObject& object, std::vector<kj::AutoCloseFd> parts) {
  return callOn(*loop, [&]() -> kj::Promise<bool> {
    auto request = client->publishRequest();
    request.setName(dataOf(name));
    write(request.initObject(), object);
    return request.send().then([&](capnp::Response<control::Exchange::PublishResults>&& results) -> kj::Promise<bool> {
      if (!results.getIsNew()) return false;
      auto added = kj::heapArrayBuilder<kj::Promise<void>>(parts.size());
      for (auto& part : parts) {
        auto next = client->addPartRequest();
        next.setName(dataOf(name));
        next.setPart(kj::heap<PassedDescriptor>(kj::mv(part)));
        added.add(next.send().ignoreResult());
      }
      return kj::joinPromises(added.finish()).then([] { return true; });
    });
  });
}

void ExchangeRelay::withdraw(const SharedName& name) {
  callOn(*loop, [&] {
    auto request = client->withdrawRequest();
    request.setName(dataOf(name));
    return request.send().ignoreResult();
  });
}

std::optional<SharedObject> ExchangeRelay::find(const SharedName& name) {
  return callOn(*loop, [&] {
    auto request = client->findRequest();
    request.setName(dataOf(name));
    return request.send().then([](capnp::Response<control::Exchange::FindResults>&& results) {
      return results.getIsFound() ? std::optional(read(results.getObject())) : std::nullopt;
    });
  });
}

std::optional<std::vector<kj::AutoCloseFd>> ExchangeRelay::open(const SharedName& name) {
  std::vector<kj::AutoCloseFd> descriptors;
  auto receive = [&](uint32_t index) {
    auto request = client->partRequest();
    request.setName(dataOf(name));
    request.setIndex(index);
    return request.send().then(
        [](capnp::Response<control::Exchange::PartResults>&& results) { return receiveDescriptor(results.getPart()); });
  };
  auto isOpen = callOn(*loop, [&]() -> kj::Promise<bool> {
    auto request = client->openRequest();
    request.setName(dataOf(name));
    return request.send().then([&](capnp::Response<control::Exchange::OpenResults>&& results) -> kj::Promise<bool> {
      if (!results.getIsFound()) return false;
      auto received = kj::heapArrayBuilder<kj::Promise<kj::AutoCloseFd>>(results.getParts());
      for (uint32_t i = 0; i < results.getParts(); ++i) received.add(receive(i));
      return kj::joinPromises(received.finish()).then([&](kj::Array<kj::AutoCloseFd>&& all) {
        for (auto& each : all) descriptors.push_back(kj::mv(each));
        return true;
      });
    });
  });
  return isOpen ? std::optional(std::move(descriptors)) : std::nullopt;
}

void ExchangeRelay::close(const SharedName& name) {
  callOn(*loop, [&] {
    auto request = client->closeRequest();
    request.setName(dataOf(name));
    return request.send().ignoreResult();
  });
}

std::optional<kj::AutoCloseFd> ExchangeRelay::file(const SharedName& name) {
  std::optional<kj::AutoCloseFd> given;
  callOn(*loop, [&]() -> kj::Promise<void> {
    auto request = client->fileRequest();
    request.setName(dataOf(name));
    return request.send().then([&](capnp::Response<control::Exchange::FileResults>&& results) -> kj::Promise<void> {
      if (!results.getIsFound()) return kj::READY_NOW;
      return receiveDescriptor(results.getFile()).then([&](kj::AutoCloseFd&& file) { given = kj::mv(file); });
    });
  });
  return given;
}

}  // namespace vgpu::stub
