// Interface Exchange of the daemon (what sessions share), for the worker's threads. Made in the event loop, which alone uses the
// capability; other threads call the functions and wait for the daemon's reply. If the daemon has ended they throw: the worker ends with
// it.
#pragma once

#include <kj/async.h>

#include <set>

#include "stub/worker/exchange.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::stub {

// The names, as in Worker.save. Throws kj::Exception if one is invalid.
std::set<SharedName> namesIn(capnp::List<capnp::Data>::Reader names);

class ExchangeRelay final : public Exchange {
 public:
  explicit ExchangeRelay(control::Exchange::Client exchange);
  // Destroys the capability in the event loop, whichever thread drops the last reference.
  ~ExchangeRelay() noexcept override;

  bool publish(const SharedName& name, const SharedObject& object, std::vector<kj::AutoCloseFd> parts) override;
  void withdraw(const SharedName& name) override;
  std::optional<SharedObject> find(const SharedName& name) override;
  std::optional<std::vector<kj::AutoCloseFd>> open(const SharedName& name) override;
  void close(const SharedName& name) override;
  std::optional<kj::AutoCloseFd> file(const SharedName& name) override;

 private:
  kj::Own<control::Exchange::Client> client;
  kj::Own<const kj::Executor> loop;
};

}  // namespace vgpu::stub
