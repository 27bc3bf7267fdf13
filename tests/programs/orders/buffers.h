// Buffers of every kind of memory, their expected bytes, and the work that has used them.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include <deque>

#include "clocks.h"

namespace orders {

using Byte = unsigned char;

enum class Kind { device, streamOrdered, variable, pinned, managed, registered, pageable, privateFile };
constexpr int kinds = 8;

// Properties of a kind of memory. The pages of a private file mapping cannot be replaced, so kernels of a session cannot access them.
struct KindTraits {
  const char* name;
  bool isHosts;       // the host reads and writes it
  bool isEverywhere;  // kernels of every device can access it
  bool isForHostFunctions;
};
constexpr KindTraits traits[kinds] = {
    {"device", false, false, false},
    {"stream-ordered", false, false, false},
    {"device variable", false, false, false},
    {"pinned", true, true, true},
    {"managed", true, true, false},
    {"registered", true, true, true},
    {"pageable", true, false, true},
    {"registered private mapping", true, false, true},
};

// One for each thread, on each device.
constexpr int threadsAtMost = 3, variableBytes = 6000;
__device__ Byte variables[threadsAtMost][variableBytes];

struct Access {
  const char* what;
  bool isWrite;
  Moment moment;
};

struct Buffer {
  Kind kind;
  int device, bytes;
  Byte* data = nullptr;
  bool isReached = true;  // kernels can access it, as its kind says: a session may have other memory at the address of registered memory
  std::vector<Byte> model;
  Moment written;            // the last write
  std::vector<Moment> read;  // the reads since then
  std::deque<Access> last;

  const KindTraits& is() const { return traits[static_cast<int>(kind)]; }

  void noteRead(const char* what, Moment moment) {
    read.push_back(moment);
    note({what, false, moment});
  }
  void noteWrite(const char* what, Moment moment) {
    read.clear();
    written = moment;
    note({what, true, moment});
  }
  // Whether `got` has the expected bytes; if not, prints the buffer's history to stderr.
  bool holds(const Byte* got) const;

 private:
  void note(Access access) {
    last.push_back(access);
    if (last.size() > 12) last.pop_front();
  }
};

inline bool Buffer::holds(const Byte* got) const {
  const int place = static_cast<int>(std::mismatch(model.begin(), model.end(), got).first - model.begin());
  if (place == bytes) return true;
  std::fprintf(stderr, "%s memory of device %d, %d bytes: [%d] is %d and should be %d; used last by\n", is().name, device, bytes, place,
               got[place], model[place]);
  for (auto& [what, isWrite, moment] : last)
    std::fprintf(stderr, "  %s by a %s: stream %d, work %d\n", isWrite ? "written" : "read", what, moment.stream, moment.number);
  return false;
}

// The size of a private mapping of a file that every system has and that is large enough.
constexpr int privateBytes = 65'536;

inline Byte* mapPrivately(int bytes) {
  const int file = open("/proc/self/exe", O_RDONLY);
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  if (file < 0 || data == MAP_FAILED) {
    std::perror("/proc/self/exe");
    std::exit(1);
  }
  close(file);
  return static_cast<Byte*>(data);
}

// Allocates the buffer's memory on its device, which is current. A stream-ordered allocation is made in `stream`.
inline void allocate(Buffer& buffer, int thread, cudaStream_t stream) {
  void* data = nullptr;
  const size_t bytes = buffer.bytes;
  switch (buffer.kind) {
    case Kind::device: CHECK(cudaMalloc(&data, bytes)); break;
    case Kind::streamOrdered: CHECK(cudaMallocAsync(&data, bytes, stream)); break;
    case Kind::variable:
      CHECK(cudaGetSymbolAddress(&data, variables));
      data = static_cast<Byte*>(data) + thread * variableBytes;
      break;
    case Kind::pinned: CHECK(cudaMallocHost(&data, bytes)); break;
    case Kind::managed: CHECK(cudaMallocManaged(&data, bytes)); break;
    case Kind::registered:
      data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
      CHECK(cudaHostRegister(data, bytes, cudaHostRegisterDefault));
      if (void* there; cudaHostGetDevicePointer(&there, data, 0) != cudaSuccess) {
        cudaGetLastError();
        buffer.isReached = false;
      }
      break;
    case Kind::pageable: data = std::malloc(bytes); break;
    case Kind::privateFile:
      data = mapPrivately(buffer.bytes);
      CHECK(cudaHostRegister(data, bytes, cudaHostRegisterDefault));
      break;
  }
  buffer.data = static_cast<Byte*>(data);
}

// Frees a buffer without pending work. Unregistered memory is the program's own again.
inline void release(Buffer& buffer, bool& isRight) {
  switch (buffer.kind) {
    case Kind::device:
    case Kind::streamOrdered:
    case Kind::managed: CHECK(cudaFree(buffer.data)); break;
    case Kind::variable: break;
    case Kind::pinned: CHECK(cudaFreeHost(buffer.data)); break;
    case Kind::pageable: std::free(buffer.data); break;
    case Kind::registered:
    case Kind::privateFile:
      CHECK(cudaHostUnregister(buffer.data));
      isRight = isRight && buffer.holds(buffer.data);
      if (buffer.kind == Kind::registered) {
        std::free(buffer.data);
      } else {
        munmap(buffer.data, buffer.bytes);
      }
      break;
  }
  buffer.data = nullptr;
}

}  // namespace orders
