// How far a snapshot that is in a daemon's memory has been written to disk: a file in the snapshot's directory, which exists during the
// writing. So a process that lists snapshots can show the progress without asking a daemon.
//
// The file holds one line, "BYTES ALL SECONDS": bytes written, bytes to be written in all, and the elapsed time by the writer's clock. The
// writer holds the file's lock: an unlocked file was left by a killed writer. Nothing depends on the file, so errors in writing it are
// ignored.
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

// The content of the file in `directory`. Returns nothing if no process is writing the snapshot.
std::optional<WriteProgress> findWriteProgress(const std::string& directory);

// The writer's file, removed with this object. One thread at a time.
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
