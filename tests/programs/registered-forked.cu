// Children of fork() when the program has changed what is mapped where it has registered memory: each has its copy of what is
// private, the same bytes of what is shared, and lives.
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

// What a child does, without CUDA: whether it lives, and says that it is so.
template <typename Work>
bool isSoInChild(Work work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  int status = 0;
  if (waitpid(child, &status, 0) == child && WIFSIGNALED(status)) std::fprintf(stderr, "a child: signal %d\n", WTERMSIG(status));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Registered while nobody could write it, and made writable since.
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

// Nothing is mapped there any more, or what others have mapped since: nothing can be registered there meanwhile.
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

// Memory that children share is mapped over it.
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
    cudaHostUnregister(memory);  // of memory that is not there any more: whatever it gives
    cudaGetLastError();
    return EXPECT(isAll(memory, 'f')) & isForked();
  }
};

// The program itself can reach none of it.
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
