// Children of fork() after the program has changed the mapping of registered memory: each child has its own copy of private memory, shares
// the bytes of shared memory, and keeps running.
#include <sys/mman.h>
#include <sys/wait.h>

#include "program.h"

namespace {

constexpr size_t bytes = 1 << 20;
constexpr int readWrite = PROT_READ | PROT_WRITE;

char* mapped(int flags, void* place = nullptr) {
  void* memory = mmap(place, bytes, readWrite, flags | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::perror("mmap"), std::exit(1);
  return static_cast<char*>(memory);
}

void protect(char* memory, int protection) {
  if (mprotect(memory, bytes, protection) != 0) std::perror("mprotect"), std::exit(1);
}

char* filled(char with) { return static_cast<char*>(std::memset(mapped(MAP_PRIVATE), with, bytes)); }

bool isAll(const char* memory, char what, size_t begin = 0) {
  for (size_t i = begin; i < bytes; ++i)
    if (memory[i] != what) return false;
  return true;
}

// What a child does, without CUDA: whether it survives and returns true.
template <typename Work>
bool isSoInChild(Work work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  int status = 0;
  if (waitpid(child, &status, 0) == child && WIFSIGNALED(status)) std::fprintf(stderr, "a child: signal %d\n", WTERMSIG(status));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Registered while it was read-only, and made writable since.
struct MadeWritable {
  char* memory = filled('a');
  MadeWritable() {
    protect(memory, PROT_READ);
    CHECK(cudaHostRegister(memory, bytes, cudaHostRegisterReadOnly));
    protect(memory, readWrite);
    memory[0] = 'b';
  }
  bool isForked() const {
    auto inChild = [this] {
      const bool ok = memory[0] == 'b' && isAll(memory, 'a', 1);
      memory[0] = memory[bytes - 1] = 'c';
      return ok && memory[0] == 'c';
    };
    return EXPECT(isSoInChild(inChild)) & EXPECT(memory[0] == 'b' && isAll(memory, 'a', 1));
  }
  bool isUnregistered() const {
    CHECK(cudaHostUnregister(memory));
    return isForked();
  }
};

// The memory is unmapped, or replaced by another mapping: nothing can be registered there meanwhile.
struct Unmapped {
  Unmapped() {
    char* memory = filled('d');
    CHECK(cudaHostRegister(memory, bytes, cudaHostRegisterDefault));
    munmap(memory, bytes);
  }
  bool isForked() const {
    return EXPECT(isSoInChild([] { return true; }));
  }
};

// Memory that is shared with children is mapped over it.
struct MappedOver {
  char* memory = filled('e');
  MappedOver() {
    CHECK(cudaHostRegister(memory, bytes, cudaHostRegisterDefault));
    mapped(MAP_SHARED | MAP_FIXED, memory);
    std::memset(memory, 'f', bytes);
  }
  bool isForked() const {
    auto inChild = [this] {
      const bool ok = isAll(memory, 'f');
      memory[0] = memory[bytes - 1] = 'g';
      return ok;
    };
    const bool ok = EXPECT(isSoInChild(inChild)) & EXPECT(memory[0] == 'g' && memory[1] == 'f' && memory[bytes - 1] == 'g');
    memory[0] = memory[bytes - 1] = 'f';
    return ok;
  }
  bool isUnregistered() const {
    cudaHostUnregister(memory);  // the registered memory no longer exists: any result is allowed
    cudaGetLastError();
    return EXPECT(isAll(memory, 'f')) & isForked();
  }
};

// The program itself cannot access any of it.
struct Inaccessible {
  char* memory = filled('h');
  Inaccessible() {
    CHECK(cudaHostRegister(memory, bytes, cudaHostRegisterDefault));
    protect(memory, PROT_NONE);
  }
  bool isForked() const {
    auto inChild = [this] {
      protect(memory, readWrite);
      const bool ok = isAll(memory, 'h');
      memory[0] = 'i';
      return ok;
    };
    return EXPECT(isSoInChild(inChild));
  }
  bool isUnregistered() const {
    CHECK(cudaHostUnregister(memory));
    const bool ok = isForked();
    protect(memory, readWrite);
    return ok & EXPECT(isAll(memory, 'h'));
  }
};

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  const MadeWritable madeWritable;
  const MappedOver mappedOver;
  const Inaccessible inaccessible;
  const Unmapped unmapped;
  auto areForked = [&] {
    return madeWritable.isForked() & unmapped.isForked() & mappedOver.isForked() & inaccessible.isForked();
  };
  bool ok = areForked();
  pausePoint();
  ok &= areForked();
  ok &= madeWritable.isUnregistered() & mappedOver.isUnregistered() & inaccessible.isUnregistered() & unmapped.isForked();
  return verdict("registered-forked", ok);
}
