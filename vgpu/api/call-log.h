// The log of failed calls that cuLogs* reads (cuda.h, "Error Log Management"): the latest hundred lines, and the callbacks that are called
// for each line. The program's side has one, and so has the emulated device.
//
// Any thread; `mutex` is a leaf. A callback is called without the mutex held, by the thread that adds the line, and never after it has been
// removed. A suspend saves nothing of the log: the program's log stays in its process.
#pragma once

#include <cuda.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu {

class CallLog {
 public:
  static constexpr size_t mostLines = 100, mostLineBytes = 256;  // cuda.h says 25,600 bytes; a driver keeps a hundred short lines (H100)

  // "[12:46:23.854][25642][CUDA][E] TEXT", as a driver writes it.
  static std::string lineOf(std::string_view text) {
    using namespace std::chrono;
    const auto now = system_clock::now();
    const std::time_t seconds = system_clock::to_time_t(now);
    std::tm local{};
    localtime_r(&seconds, &local);
    const auto part = static_cast<int>(duration_cast<milliseconds>(now.time_since_epoch()).count() % 1000);
    char head[64];
    std::snprintf(head, sizeof head, "[%02d:%02d:%02d.%03d][%ld][CUDA][E] ", local.tm_hour, local.tm_min, local.tm_sec, part,
                  syscall(SYS_gettid));
    return std::string(head).append(text);
  }
  static std::string failure(std::string_view entry, CUresult result, const char* name) {
    return lineOf("Returning " + std::to_string(result) + " (" + (name != nullptr ? name : "unknown") + ") from " + std::string(entry));
  }

  void add(std::string line) {
    std::unique_lock lock(mutex);
    lines.push_back(line.substr(0, mostLineBytes - 1));
    for (; lines.size() > mostLines; ++first) lines.pop_front();
    const auto told = listeners;
    for (auto& each : told) {
      if (each->isRemoved) continue;
      ++each->running, ++tells;
      lock.unlock();
      each->function(each->data, CU_LOG_LEVEL_ERROR, line.data(), line.size());
      lock.lock();
      --each->running, --tells;
      returned.notify_all();
    }
  }

  bool hasListeners() const {
    std::lock_guard lock(mutex);
    return !listeners.empty();
  }
  // Adds a callback, whose handle `added` receives if it is not null; or, without a function, removes the callback with handle `removed`
  // and waits until it does not run, so that the caller may free what it uses. A removal from within a callback does not wait, because it
  // might wait for itself.
  CUresult listen(CUlogsCallback function, void* data, CUlogsCallbackHandle* added, CUlogsCallbackHandle removed) {
    std::unique_lock lock(mutex);
    if (function != nullptr) {
      listeners.push_back(std::make_shared<Listener>(Listener{++lastListener, function, data}));
      if (added != nullptr) *added = std::bit_cast<CUlogsCallbackHandle>(lastListener);
      return CUDA_SUCCESS;
    }
    const auto number = std::bit_cast<uint64_t>(removed);
    const auto found = std::ranges::find_if(listeners, [&](auto& each) { return each->number == number; });
    if (found == listeners.end()) return CUDA_ERROR_INVALID_VALUE;
    const auto listener = *found;
    listener->isRemoved = true;
    listeners.erase(found);
    if (tells == 0) returned.wait(lock, [&] { return listener->running == 0; });
    return CUDA_SUCCESS;
  }

  // The destination of the lines that are read.
  struct Reader {
    const char* path = nullptr;  // a file
    char* buffer = nullptr;      // or memory
    size_t* size = nullptr;
    bool reads = true;  // false: only advances the iterator
  };
  // Reads the lines from `*from` on (all lines if `from` is null) and sets `*from` to the end.
  CUresult read(CUlogIterator* from, const Reader& to) {
    std::lock_guard lock(mutex);
    const CUlogIterator end = first + static_cast<CUlogIterator>(lines.size());
    if (!to.reads) return from == nullptr ? CUDA_ERROR_INVALID_VALUE : (*from = end, CUDA_SUCCESS);
    CUlogIterator begin = from == nullptr ? first : *from;
    if (begin > end) return CUDA_ERROR_INVALID_VALUE;
    const bool areGone = begin < first;
    begin = std::max(begin, first);
    CUresult result = to.size != nullptr ? readInto(to.buffer, *to.size, begin, areGone) : readInto(to.path, begin, areGone);
    if (result == CUDA_SUCCESS && from != nullptr) *from = end;
    return result;
  }

 private:
  struct Listener {
    uint64_t number;
    CUlogsCallback function;
    void* data;
    unsigned running = 0;  // calls in progress
    bool isRemoved = false;
  };
  static thread_local inline unsigned tells = 0;  // how many callbacks the calling thread is in
  static constexpr std::string_view gone = "[CUDA] The oldest messages are missing: there was no room for them.\n";

  CUresult readInto(const char* path, CUlogIterator begin, bool areGone) const {
    FILE* file = path == nullptr || *path == 0 ? nullptr : std::fopen(path, "we");
    if (file == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (areGone) std::fwrite(gone.data(), 1, gone.size(), file);
    for (size_t i = begin - first; i < lines.size(); ++i) std::fprintf(file, "%s\n", lines[i].c_str());
    return std::fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
  }

  // The latest lines that fit, after a line saying that others are missing if there are any.
  CUresult readInto(char* buffer, size_t& size, CUlogIterator begin, bool areGone) const {
    if (buffer == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    const size_t room = size - 1;
    size_t needed = areGone ? gone.size() : 0, at = begin - first;
    for (size_t i = at; i < lines.size(); ++i) needed += lines[i].size() + 1;
    for (bool isCut = areGone; needed > room && at < lines.size(); ++at) {
      needed -= lines[at].size() + 1;
      if (!isCut) needed += gone.size();
      isCut = areGone = true;
    }
    const bool isNothing = at == lines.size();
    size = 0;
    *buffer = 0;
    if (isNothing) return begin - first < lines.size() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    std::string text(areGone ? gone : "");
    for (; at < lines.size(); ++at) text.append(lines[at]).push_back('\n');
    std::memcpy(buffer, text.c_str(), text.size() + 1);
    size = text.size();
    return CUDA_SUCCESS;
  }

  mutable std::mutex mutex;
  std::deque<std::string> lines;
  CUlogIterator first = 0;  // the number of the oldest line
  std::condition_variable returned;  // notified when a callback has returned
  std::vector<std::shared_ptr<Listener>> listeners;
  uint64_t lastListener = 0;
};

}  // namespace vgpu
