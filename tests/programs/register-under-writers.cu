// A program registers and unregisters memory that its other threads keep using: threads that block every signal and write, and a thread
// into whose buffer the kernel writes in system calls. No write may be lost.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/syscall.h>

#include <cstring>
#include <thread>

#include "program.h"

__global__ void increment(long* word) { atomicAdd(reinterpret_cast<unsigned long long*>(word), 1ull); }

namespace {

constexpr size_t wordsPerPage = 4096 / sizeof(long), pages = 600;

// Counts up its own words, one per page, until told to end.
class Writer {
 public:
  Writer(long* words, size_t offset) : words(words + offset), thread([this] { run(); }) {}
  bool lostNothing() {
    ended = true;
    thread.join();
    for (size_t page = 0; page < pages; ++page)
      if (words[page * wordsPerPage] != counted[page]) {
        std::fprintf(stderr, "page %zu: %ld of %ld writes\n", page, words[page * wordsPerPage], counted[page]);
        return false;
      }
    return true;
  }

 private:
  void run() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    for (size_t page = 0; !ended; page = (page + 7) % pages) {  // not in the order in which pages are registered
      volatile long& word = words[page * wordsPerPage];
      word = word + 1;
      ++counted[page];
    }
  }

  long* words;
  std::vector<long> counted = std::vector<long>(pages, 0);
  std::atomic<bool> ended{false};
  std::thread thread;
};

// Lets system calls write the same bytes everywhere in a page, repeatedly. If the program may handle the kernel's faults, none of the calls
// fails; otherwise they may fail with EFAULT (intercept/session/memory/page-adoption.h).
class Reader {
 public:
  explicit Reader(char* buffer) : buffer(buffer), thread([this] { run(); }) {}
  bool failedNever() {
    ended = true;
    thread.join();
    return !failed || !mayWatch();
  }

 private:
  static bool mayWatch() {
    const int fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
    if (fd >= 0) close(fd);
    return fd >= 0;
  }
  void run() {
    const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    for (size_t page = 0; !ended; page = (page + 11) % pages)
      failed |= read(zeros, buffer + page * 4096, 64) != 64;
    close(zeros);
  }

  char* buffer;
  bool failed = false;
  std::atomic<bool> ended{false};
  std::thread thread;
};

void registerAndUnregister(long* memory, int times) {
  for (int i = 0; i < times; ++i) {
    CHECK(cudaHostRegister(memory, pages * 4096, cudaHostRegisterMapped));
    CHECK(cudaHostUnregister(memory));
  }
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  // In each page: two words for writers, one for the device, one buffer for the reader.
  std::vector<long> memory(pages * wordsPerPage + wordsPerPage, 0);
  long* const aligned = memory.data() + (wordsPerPage - reinterpret_cast<uintptr_t>(memory.data()) / sizeof(long) % wordsPerPage);
  long* const shared = &aligned[2];
  bool ok = true;
  {
    Writer first(aligned, 0), second(aligned, 1);
    Reader reader(reinterpret_cast<char*>(aligned + 8));
    registerAndUnregister(aligned, 10);
    CHECK(cudaHostRegister(aligned, pages * 4096, cudaHostRegisterMapped));
    pausePoint();
    long* device = nullptr;
    CHECK(cudaHostGetDevicePointer(&device, shared, 0));
    increment<<<1, 100>>>(device);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaHostUnregister(aligned));
    registerAndUnregister(aligned, 10);
    ok = first.lostNothing() & second.lostNothing() & EXPECT(reader.failedNever());
  }
  ok &= EXPECT(*shared == 100);
  return verdict("register-under-writers", ok);
}
