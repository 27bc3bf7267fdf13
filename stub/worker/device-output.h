// What kernels have printed, on its way from the driver to the program.
//
// The driver writes it into its process's standard output when a call gives it the occasion (CUDA C++ Programming Guide,
// "Formatted Output"). In a worker that is a memory file, which takes whatever comes without holding the driver up; from there
// it is collected into `text`, and the program takes it in parts (outputTake) and writes it to its own standard output.
// Any GPU's thread: the mutex, a leaf, guards all of it. A snapshot keeps what has not been taken.
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
  // A program that never asks costs no more memory than this; the oldest is lost, as in the driver's own buffer.
  static constexpr size_t mostBytes = size_t{64} << 20;

  // Makes a memory file this process's standard output and returns its descriptor. Once, before the driver is loaded. Throws
  // kj::Exception.
  static int redirect();

  // `file`: what redirect() has returned; -1: standard output is not ours, and nothing is ever collected.
  // What is in the file by now was another session's.
  explicit DeviceOutput(int file);

  // Takes over what the driver has written since the last time. Throws kj::Exception where the file cannot be read.
  void collect();

  bool isEmpty() const {
    std::lock_guard lock(mutex);
    return taken == text.size();
  }
  // Says in `waits`, which the program reads, whether there is any. Under the mutex, so that the last of several threads is
  // right.
  void tell(std::atomic<uint32_t>& waits) const {
    std::lock_guard lock(mutex);
    waits.store(taken == text.size() ? 0 : 1, std::memory_order_release);
  }
  // The next bytes for the program, at most so many; they are the program's then.
  std::string take(size_t mostBytes);
  // While no calls are executed: all that has not been taken.
  std::string_view rest() const { return std::string_view(text).substr(taken); }
  // What a snapshot kept: it comes before all that is collected here.
  void load(std::string before) { text = std::move(before); }

 private:
  void add(std::string_view more);

  int file;
  int64_t collected = 0;  // bytes of `file`
  std::string text;
  size_t taken = 0;  // bytes of `text` that are the program's already
  mutable std::mutex mutex;
};

}  // namespace vgpu::stub
