// Shared by all programs here: checked CUDA calls, device arrays, the pause point, and the verdict.
//
// A program builds state on the GPU, calls pausePoint() while losing that state would show, continues, and checks its
// result against the CPU. It does not know what happens at the pause point: the caller decides, with the
// environment.
#pragma once

#include <cuda_runtime.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

// main()'s result if the test is not applicable on this machine.
constexpr int notHere = 77;

// Ends the program if a CUDA call fails, with the call, its source line and the error's name.
#define CHECK(call) checkCall((call), #call, __FILE__, __LINE__)

inline void checkCall(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s:%d: %s: %s (%s)\n", file, line, call, cudaGetErrorName(error), cudaGetErrorString(error));
  std::exit(1);
}

// `count` elements of device memory, freed with the object.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count(count) { CHECK(cudaMalloc(&data, count * sizeof(T))); }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) { upload(values); }
  ~DeviceArray() { CHECK(cudaFree(data)); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  // Waits, because a copy of a few pageable bytes may still be in progress when cudaMemcpy returns, and non-blocking streams would overtake
  // it.
  void upload(const std::vector<T>& values) {
    copyIn(values);
    CHECK(cudaStreamSynchronize(cudaStreamLegacy));
  }
  std::vector<T> download() const {
    std::vector<T> values(count);
    copyOut(values);
    return values;
  }
  // Plain copies of as many elements as the vector has.
  void copyIn(const std::vector<T>& values) {
    CHECK(cudaMemcpy(data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  void copyOut(std::vector<T>& values) const {
    CHECK(cudaMemcpy(values.data(), data, values.size() * sizeof(T), cudaMemcpyDeviceToHost));
  }
  operator T*() const { return data; }

 private:
  T* data = nullptr;
  size_t count;
};

// Makes CUDA load a kernel for the current device now instead of at its first launch: loading waits for all of the device's work, so a
// kernel that is to run beside a held stream must be loaded before.
template <typename Kernel>
void loadKernel(Kernel* kernel) {
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, kernel));
}

inline int blocksFor(size_t threads, int blockSize) { return static_cast<int>((threads + blockSize - 1) / blockSize); }

// Numbers the process's pause points, counting from 0 over all threads.
inline int nextPauseIndex() {
  static std::atomic<int> next{0};
  return next++;
}

// Does nothing unless VGPU_PAUSE_FILE names a path P. Then the pause point with the number VGPU_PAUSE_INDEX (0 if unset) writes the process
// id to P.reached and waits, without a CUDA call, until P.go exists. If the index is `all`, each pause point does so with its own number:
// P.0.reached, P.0.go, …
inline void pausePoint() {
  const char* path = std::getenv("VGPU_PAUSE_FILE");
  if (!path) return;
  const char* index = std::getenv("VGPU_PAUSE_INDEX");
  const int number = nextPauseIndex();
  const bool isEach = index && std::strcmp(index, "all") == 0;
  if (!isEach && number != (index ? std::atoi(index) : 0)) return;

  char which[16] = "", reached[4096], go[4096], unfinished[4096];
  if (isEach) std::snprintf(which, sizeof which, ".%d", number);
  std::snprintf(reached, sizeof reached, "%s%s.reached", path, which);
  std::snprintf(go, sizeof go, "%s%s.go", path, which);
  std::snprintf(unfinished, sizeof unfinished, "%s%s.reached.tmp", path, which);
  std::FILE* file = std::fopen(unfinished, "w");
  if (!file || std::fprintf(file, "%d\n", static_cast<int>(getpid())) < 0 || std::fclose(file) != 0 ||
      std::rename(unfinished, reached) != 0) {
    std::perror(reached);
    std::exit(3);
  }
  const char* limit = std::getenv("VGPU_TIME_LIMIT");  // set by tests/run-flavour, larger under sanitizers
  const int pollMicroseconds = 2000, limitSeconds = limit ? std::atoi(limit) : 120;
  for (int polls = 0; access(go, F_OK) != 0; ++polls) {
    if (polls > limitSeconds * (1000000 / pollMicroseconds)) {
      std::fprintf(stderr, "pause point: %s did not appear within %d s\n", go, limitSeconds);
      std::exit(3);
    }
    usleep(pollMicroseconds);
  }
}

// False, and prints the condition to stderr, if it does not hold.
#define EXPECT(condition) expectCondition((condition), #condition, __FILE__, __LINE__)

inline bool expectCondition(bool holds, const char* text, const char* file, int line) {
  if (!holds) std::fprintf(stderr, "%s:%d: not so: %s\n", file, line, text);
  return holds;
}

// Whether a call returns exactly the error that CUDA documents for it.
#define EXPECT_ERROR(call, expected) expectError((call), (expected), #call, __FILE__, __LINE__)

inline bool expectError(cudaError_t got, cudaError_t expected, const char* call, const char* file, int line) {
  if (got != expected) {
    std::fprintf(stderr, "%s:%d: %s: expected %s, got %s\n", file, line, call, cudaGetErrorName(expected),
                 cudaGetErrorName(got));
  }
  return got == expected;
}

inline bool hasSize(const char* what, size_t got, size_t want) {
  if (got != want) std::fprintf(stderr, "%s: %zu elements, expected %zu\n", what, got, want);
  return got == want;
}

// A value as text. Not std::string, which costs nvcc half a second in each program.
struct NumberText {
  template <typename T>
  explicit NumberText(T value) {
    if constexpr (std::is_floating_point_v<T>)
      std::snprintf(text, sizeof text, "%.17g", static_cast<double>(value));
    else if constexpr (std::is_unsigned_v<T>)
      std::snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(value));
    else
      std::snprintf(text, sizeof text, "%lld", static_cast<long long>(value));
  }
  char text[40];
};

// Whether two results are bitwise equal; prints the first difference to stderr.
template <typename T>
bool same(const char* what, const std::vector<T>& got, const std::vector<T>& want) {
  if (!hasSize(what, got.size(), want.size())) return false;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;
    std::fprintf(stderr, "%s[%zu]: got %s, expected %s\n", what, i, NumberText(got[i]).text, NumberText(want[i]).text);
    return false;
  }
  return true;
}

// Whether every element is within `tolerance` of the expected one: relative if that is larger than 1, else absolute.
template <typename T, typename U>
bool close(const char* what, const std::vector<T>& got, const std::vector<U>& want, double tolerance) {
  if (!hasSize(what, got.size(), want.size())) return false;
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::fabs(double(got[i]) - double(want[i])) / std::fmax(1.0, std::fabs(double(want[i])));
    if (error <= tolerance) continue;  // never true for a NaN
    std::fprintf(stderr, "%s[%zu]: got %s, expected %s within %g\n", what, i, NumberText(got[i]).text,
                 NumberText(want[i]).text, tolerance);
    return false;
  }
  return true;
}

// Prints the verdict; returns main's result.
inline int verdict(const char* name, bool ok) {
  std::printf("%s: %s\n", name, ok ? "ok" : "FAILED");
  return ok ? 0 : 1;
}
