// vgpud's command line.
#pragma once

#include <spdlog/common.h>

#include <optional>
#include <string>
#include <vector>

#include "tools/vgpud/worker-process.h"

namespace vgpu::daemon {

// A virtual machine that is served: --guest NAME=FILE[,SIZE].
struct GuestOption {
  std::string name, file;
  uint64_t bytes = 0;  // 0: as the file has
};
// Throws kj::Exception if `text` is none.
GuestOption parseGuest(const std::string& text);

struct DaemonOptions {
  std::string runDirectory;
  std::string device = "auto";
  std::string logLevel = "info";
  std::string imageCache;  // a folder, or "none"; empty: the user's own
  std::vector<std::string> guests;  // as parseGuest() takes them
  std::string libraries;  // a folder; empty: where the dynamic linker looks
  uint64_t imageCacheBytes = 4ull << 30;
  unsigned warm = 1;             // workers that wait ready
  unsigned recycleSeconds = 30;  // for which one waits whose program has ended
  bool keepsSuspended = false;
  uint64_t pinnedBytes = 0;      // for snapshots
  std::string fold = "auto";     // whether launches are folded into graphs
  std::vector<std::string> listens;  // addresses for connections from elsewhere
  bool allowsPlain = false;          // that others can reach, though they are neither encrypted nor authenticated
  std::optional<unsigned> evacuateSeconds;  // for sessions to leave when it is told to end; 0: they end with it
  bool isPrivate = false;  // of one `vgpuctl run`: ends with it
  bool listsFaultPoints = false;
};

// The kinds of worker to try, best first, for the value of --device. Throws kj::Exception if that is invalid or the installation
// lacks the emulated device.
std::vector<WorkerKind> workerKinds(const std::string& device);

}  // namespace vgpu::daemon
