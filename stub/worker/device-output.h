// Text that kernels have printed, on its way from the driver to the program.
//
// The driver writes it to standard output during some of its calls (CUDA C++ Programming Guide, "Formatted Output"). In a worker, standard
// output is a memory file, so the driver never blocks; collect() moves the text from there into `text`, and the program takes it in parts
// (outputTake) and writes it to its own standard output.
// Any GPU's thread: the mutex, a leaf, guards all of it. A snapshot keeps the text that has not been taken.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace vgpu::stub {

class DeviceOutput {
 public:
  // Bounds the memory if a program never takes its text; the oldest text is lost, as in the driver's own buffer.
  static constexpr size_t mostBytes = size_t{64} << 20;

  // Makes a memory file this process's standard output and returns its descriptor. Call once, before the driver is loaded. Throws
  // kj::Exception.
  static int redirect();

  // `file`: the result of redirect(); -1: standard output is not redirected, and nothing is ever collected.
  // Text that is in the file already belongs to an earlier session and is skipped.
  explicit DeviceOutput(int file);

  // Moves what the driver has written since the last call into `text`. Throws kj::Exception if the file cannot be read.
  void collect();

  bool isEmpty() const {
    std::lock_guard lock(mutex);
    return taken == text.size();
  }
  // Stores in `waits`, which the program reads, whether there is any text. Stores under the mutex, so that the last of several threads
  // stores the true value.
  void tell(std::atomic<uint32_t>& waits) const {
    std::lock_guard lock(mutex);
    waits.store(taken == text.size() ? 0 : 1, std::memory_order_release);
  }
  // Removes and returns the next bytes, at most so many.
  std::string take(size_t mostBytes);
  // While no calls are executed: the text that has not been taken.
  std::string_view rest() const { return std::string_view(text).substr(taken); }
  // Text from a snapshot: it comes before all that is collected here.
  void load(std::string before) { text = std::move(before); }

 private:
  void add(std::string_view more);

  int file;
  int64_t collected = 0;  // bytes of `file`
  std::string text;
  size_t taken = 0;  // bytes of `text` that the program has taken
  mutable std::mutex mutex;
};

}  // namespace vgpu::stub
