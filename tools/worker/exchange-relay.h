// The daemon's part in what sessions share (interface Exchange), for the worker's threads. Made in the event loop, which alone
// touches the capability; the functions are called by other threads and wait for the daemon's reply. If the daemon has ended they
// throw: the worker ends with it.
#pragma once

#include <kj/async.h>

#include <set>

#include "stub/worker/exchange.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::stub {

// As Worker.save has them. Throws kj::Exception if one is none.
std::set<SharedName> namesIn(capnp::List<capnp::Data>::Reader names);

class ExchangeRelay final : public Exchange {
 public:
  explicit ExchangeRelay(control::Exchange::Client exchange);
  // The capability ends in the event loop, whichever thread lets go of this last.
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
