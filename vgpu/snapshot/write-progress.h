// How far the writing of a snapshot is that is in a daemon's memory: a file in its directory, which is there as long as it is
// written. So whoever lists snapshots can say it, and asks no daemon.
//
// The file holds one line, "BYTES ALL SECONDS": written, to be written in all, and for how long, by the writer's own clock. The
// writer holds its lock: a file without one was left by a writer that was killed. Nothing depends on it: what cannot be written
// is left out.
#pragma once

#include <kj/io.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace vgpu::snapshot {

constexpr const char* writingFile = "writing";

struct WriteProgress {
  uint64_t doneBytes = 0, allBytes = 0;
  double seconds = 0;
};

// What the file in `directory` says. Nothing if nobody writes the snapshot.
std::optional<WriteProgress> findWriteProgress(const std::string& directory);

// The writer's file, removed with its owner. One thread at a time.
class WriteProgressFile {
 public:
  explicit WriteProgressFile(const std::string& directory);
  ~WriteProgressFile() noexcept;
  WriteProgressFile(const WriteProgressFile&) = delete;
  WriteProgressFile& operator=(const WriteProgressFile&) = delete;
  void report(uint64_t doneBytes, uint64_t allBytes);

 private:
  using Clock = std::chrono::steady_clock;
  const std::string path;
  const Clock::time_point start = Clock::now();
  kj::AutoCloseFd file;
};

}  // namespace vgpu::snapshot
