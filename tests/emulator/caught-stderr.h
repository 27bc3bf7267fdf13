// Captures messages of the emulated device.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace vgpu::test {

// Captures stderr while it lives.
class CaughtStderr {
 public:
  CaughtStderr() : file(std::tmpfile()), before(dup(2)) { dup2(fileno(file), 2); }
  ~CaughtStderr() {
    restore();
    std::fclose(file);
  }
  CaughtStderr(const CaughtStderr&) = delete;
  std::string text() {
    restore();
    std::string all(4096, '\0');
    all.resize(static_cast<size_t>(std::max<ssize_t>(0, pread(fileno(file), all.data(), all.size(), 0))));
    return all;
  }

 private:
  void restore() {
    if (before < 0) return;
    dup2(before, 2);
    close(before);
    before = -1;
  }
  std::FILE* file;
  int before;
};

}  // namespace vgpu::test
