// Which memory of the program can be registered (cudaHostRegister), and which of it kernels can access.
#include "conformance.h"

#include <fcntl.h>
#include <sys/mman.h>

constexpr size_t bytes = 64 << 10, page = 4096;
constexpr int readWrite = PROT_READ | PROT_WRITE;

__global__ void addFive(volatile unsigned* words) { words[1] = words[0] + 5; }
__global__ void read(volatile unsigned* words, unsigned* to) { *to = words[0]; }

static unsigned flagsOf(void* memory) {
  unsigned flags = 0;
  SAY(cudaHostGetFlags(&flags, memory));
  return flags;
}

// Registers the memory, lets a kernel use it, and unregisters it.
static void use(void* memory, unsigned flags, bool isWritten, size_t size = bytes) {
  VALUE(flags);
  if (SAY(cudaHostRegister(memory, size, flags)) != cudaSuccess) {
    SAY(cudaGetLastError());
    return;
  }
  VALUE(flagsOf(memory));
  void* onDevice = nullptr;
  if (SAY(cudaHostGetDevicePointer(&onDevice, memory, 0)) == cudaSuccess) {
    VALUE(onDevice == memory);
    auto* words = static_cast<unsigned*>(memory);
    if (isWritten) {
      addFive<<<1, 1>>>(static_cast<unsigned*>(onDevice));
      SAY(cudaDeviceSynchronize());
      VALUE(words[1] == words[0] + 5);
    } else {
      unsigned *to = nullptr, got = 0;
      CHECK(cudaMalloc(&to, sizeof got));
      read<<<1, 1>>>(static_cast<unsigned*>(onDevice), to);
      SAY(cudaMemcpy(&got, to, sizeof got, cudaMemcpyDeviceToHost));
      VALUE(got == words[0]);
    }
  } else {
    SAY(cudaGetLastError());
  }
  SAY(cudaHostRegister(memory, size, flags));
  SAY(cudaHostUnregister(memory));
  SAY(cudaHostUnregister(memory));
  SAY(cudaGetLastError());
}

// Maps an unlinked file that contains a 9.
static void* mapped(const char* folder, int protection, int flags, size_t fileBytes = bytes) {
  std::string path = std::string(folder) + "/vgpu-registered-XXXXXX";
  const int file = mkstemp(path.data());
  const unsigned nine = 9;
  if (file < 0 || ftruncate(file, fileBytes) != 0 || pwrite(file, &nine, sizeof nine, 0) != sizeof nine) std::exit(1);
  void* memory = mmap(nullptr, bytes, protection, flags, file, 0);
  unlink(path.c_str());
  if (memory == MAP_FAILED) std::exit(1);
  return memory;
}

static void* anonymous(int protection, int flags) { return mmap(nullptr, bytes, protection, flags | MAP_ANONYMOUS, -1, 0); }

SECTION(allocated) {
  CHECK(cudaFree(nullptr));
  void* memory = nullptr;
  if (posix_memalign(&memory, page, bytes) != 0) std::exit(1);
  std::memset(memory, 1, bytes);
  for (unsigned flags : {0u, 1u, 2u, 3u, 8u, 16u}) use(memory, flags, true);
}

alignas(page) static char zeros[bytes], initialised[bytes] = {3};

// Registered as read-only for devices: copies and fills that write to it.
SECTION(writtenThoughReadOnly) {
  CHECK(cudaFree(nullptr));
  void *memory = nullptr, *onDevice = nullptr;
  if (posix_memalign(&memory, page, bytes) != 0) std::exit(1);
  std::memset(memory, 1, bytes);
  SAY(cudaMalloc(&onDevice, bytes));
  SAY(cudaMemset(onDevice, 2, bytes));
  SAY(cudaHostRegister(memory, bytes, cudaHostRegisterReadOnly));
  for (size_t size : {size_t(4), bytes}) {
    SAY(cudaMemcpy(memory, onDevice, size, cudaMemcpyDeviceToHost));
    SAY(cudaMemcpy(memory, onDevice, size, cudaMemcpyDefault));
    SAY(cudaMemcpy2D(memory, 64, onDevice, 64, 4, size / 64 + 1, cudaMemcpyDeviceToHost));
    VALUE(*static_cast<unsigned*>(memory));
    SAY(cudaMemcpy(onDevice, memory, size, cudaMemcpyHostToDevice));
  }
  SAY(cudaMemcpy(memory, static_cast<char*>(memory) + bytes / 2, 16, cudaMemcpyDefault));
  SAY(cudaHostUnregister(memory));
  SAY(cudaMemcpy(memory, onDevice, bytes, cudaMemcpyDeviceToHost));
}

SECTION(staticZeros) {
  CHECK(cudaFree(nullptr));
  use(zeros, cudaHostRegisterDefault, true);
}

SECTION(staticInitialised) {
  CHECK(cudaFree(nullptr));
  use(initialised, cudaHostRegisterDefault, true);
}

SECTION(stack) {
  CHECK(cudaFree(nullptr));
  alignas(page) char memory[bytes] = {7};
  use(memory, cudaHostRegisterDefault, true);
}

SECTION(sharedWithChildren) {
  CHECK(cudaFree(nullptr));
  use(anonymous(readWrite, MAP_SHARED), cudaHostRegisterDefault, true);
}

SECTION(sharedFile) {
  CHECK(cudaFree(nullptr));
  char* memory = static_cast<char*>(mapped("/dev/shm", readWrite, MAP_SHARED));
  use(memory, cudaHostRegisterDefault, true);
  use(memory, cudaHostRegisterReadOnly, true);
  use(memory + 2 * page, cudaHostRegisterDefault, true, page);
}

SECTION(sharedFileReadOnly) {
  CHECK(cudaFree(nullptr));
  void* memory = mapped("/dev/shm", PROT_READ, MAP_SHARED);
  for (unsigned flags : {cudaHostRegisterDefault, cudaHostRegisterReadOnly}) use(memory, flags, false);
}

SECTION(fileTooShort) {
  CHECK(cudaFree(nullptr));
  use(mapped("/dev/shm", readWrite, MAP_SHARED, bytes / 2), cudaHostRegisterDefault, true);
}

SECTION(privateFile) {
  CHECK(cudaFree(nullptr));
  use(mapped("/dev/shm", readWrite, MAP_PRIVATE), cudaHostRegisterDefault, true);
}

SECTION(privateFileReadOnly) {
  CHECK(cudaFree(nullptr));
  void* memory = mapped("/dev/shm", PROT_READ, MAP_PRIVATE);
  for (unsigned flags : {cudaHostRegisterDefault, cudaHostRegisterReadOnly}) use(memory, flags, false);
}

SECTION(anonymousReadOnly) {
  CHECK(cudaFree(nullptr));
  void* memory = anonymous(PROT_READ, MAP_PRIVATE);
  for (unsigned flags : {cudaHostRegisterDefault, cudaHostRegisterReadOnly}) use(memory, flags, false);
}

SECTION(partly) {
  CHECK(cudaFree(nullptr));
  auto part = [](int protection) {
    char* memory = static_cast<char*>(anonymous(readWrite, MAP_PRIVATE));
    if (mprotect(memory + bytes / 2, bytes / 2, protection) != 0) std::exit(1);
    return memory;
  };
  for (unsigned flags : {cudaHostRegisterDefault, cudaHostRegisterReadOnly}) use(part(PROT_NONE), flags, true);
  use(part(PROT_READ), cudaHostRegisterDefault, true);
  char* memory = part(readWrite);
  munmap(memory + bytes / 2, bytes / 2);
  use(memory, cudaHostRegisterDefault, true);
}
