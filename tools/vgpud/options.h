// vgpud's command line.
#pragma once

#include <spdlog/common.h>

#include <optional>
#include <string>
#include <vector>

#include "tools/vgpud/worker-process.h"

namespace vgpu::daemon {

// A virtual machine to serve: --guest NAME=FILE[,SIZE].
struct GuestOption {
  std::string name, file;
  uint64_t bytes = 0;  // 0: the file's size
};
// Throws kj::Exception if `text` is not valid.
GuestOption parseGuest(const std::string& text);

struct DaemonOptions {
  std::string runDirectory;
  std::string device = "auto";
  std::string logLevel = "info";
  std::string imageCache;  // a folder, or "none"; empty: the user's cache folder
  std::vector<std::string> guests;  // in the format of parseGuest()
  std::string libraries;  // a folder; empty: the dynamic linker's search path
  uint64_t imageCacheBytes = 4ull << 30;
  unsigned warm = 1;             // number of workers that are kept ready
  unsigned recycleSeconds = 30;  // how long a worker whose program has ended waits for the next one
  bool keepsSuspended = false;
  uint64_t pinnedBytes = 0;      // pinned memory for snapshots
  std::string fold = "auto";     // whether launches are folded into graphs
  std::vector<std::string> listens;  // addresses for connections from elsewhere
  bool allowsPlain = false;          // allows addresses that others can reach without encryption and authentication
  std::optional<unsigned> evacuateSeconds;  // how long sessions may take to leave when the daemon is told to end; 0: they end with it
  bool isPrivate = false;  // started by one `vgpuctl run`: ends with it
  bool listsFaultPoints = false;
};

// The kinds of workers to try, best first, for the value of --device. Throws kj::Exception if that is invalid or the installation lacks the
// emulated device.
std::vector<WorkerKind> workerKinds(const std::string& device);

}  // namespace vgpu::daemon
