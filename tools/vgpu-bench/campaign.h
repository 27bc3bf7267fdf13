// One run of vgpu-bench: a node, and the cases, run on it and natively in turn.
#pragma once

#include <memory>
#include <vector>

#include "tools/common/private-daemon.h"
#include "tools/vgpu-bench/options.h"
#include "tools/vgpu-bench/results.h"

namespace vgpu::bench {

class Campaign {
 public:
  // Starts a vgpud if --node names no node. Throws kj::Exception if it cannot be started.
  explicit Campaign(const BenchOptions& options);

  bool hasNative() const { return native; }
  bool isEmulated() const { return nodeName.starts_with("(emulated"); }
  // "(cuda, 1 device: NVIDIA H200)", or the node's address.
  const std::string& node() const { return nodeName; }

  // Measures the cases, reporting progress on stderr. Throws kj::Exception if a case fails on either side. `quick`: the cases are small,
  // and every run counts.
  Results measure(const std::vector<Case>& cases, bool quick);

 private:
  Run runOnce(const Case& measured, Side side) const;
  Run runCounted(const Case& measured) const;
  std::vector<std::string> commandOf(const Case& measured, Side side) const;

  const BenchOptions& options;
  std::unique_ptr<PrivateDaemon> daemon;
  std::string nodeName, nodeAddress;
  bool native = false;
};

}  // namespace vgpu::bench
