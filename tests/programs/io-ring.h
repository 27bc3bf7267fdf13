// An io_uring with one operation at a time, by plain system calls: the kernel accesses the memory asynchronously.
#pragma once

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

class IoRing {
 public:
  IoRing() {
    io_uring_params facts{};
    ring = static_cast<int>(syscall(SYS_io_uring_setup, 1, &facts));
    if (ring < 0) return;
    submitted = map(facts.sq_off.array + facts.sq_entries * sizeof(uint32_t), IORING_OFF_SQ_RING);
    completed = map(facts.cq_off.cqes + facts.cq_entries * sizeof(io_uring_cqe), IORING_OFF_CQ_RING);
    entries = map(facts.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES);
    submissions = facts.sq_off;
    completions = facts.cq_off;
  }
  IoRing(const IoRing&) = delete;
  ~IoRing() {
    for (auto [begin, bytes] : {submitted, completed, entries})
      if (begin != nullptr) munmap(begin, bytes);
    if (ring >= 0) close(ring);
  }

  // Whether the system lets the program use one.
  bool isThere() const { return ring >= 0; }

  // The result of IORING_OP_READ or IORING_OP_WRITE, or a negative error. With IOSQE_ASYNC in `flags` a kernel thread executes it.
  int run(uint8_t operation, int file, void* buffer, uint32_t bytes, uint8_t flags) {
    auto* entry = static_cast<io_uring_sqe*>(entries.begin);
    *entry = {};
    entry->opcode = operation;
    entry->flags = flags;
    entry->fd = file;
    entry->off = static_cast<uint64_t>(-1);  // at the file's current position
    entry->addr = reinterpret_cast<uint64_t>(buffer);
    entry->len = bytes;
    const uint32_t tail = word(submitted, submissions.tail);
    word(submitted, submissions.array + (tail & word(submitted, submissions.ring_mask)) * sizeof(uint32_t)) = 0;  // the only entry
    __atomic_store_n(&word(submitted, submissions.tail), tail + 1, __ATOMIC_RELEASE);
    long entered;
    while ((entered = syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0)) < 0 && errno == EINTR) {
    }
    if (entered < 0) return -errno;
    const uint32_t head = word(completed, completions.head);
    if (__atomic_load_n(&word(completed, completions.tail), __ATOMIC_ACQUIRE) == head) return -ETIME;
    auto* results = reinterpret_cast<io_uring_cqe*>(static_cast<char*>(completed.begin) + completions.cqes);
    const int result = results[head & word(completed, completions.ring_mask)].res;
    __atomic_store_n(&word(completed, completions.head), head + 1, __ATOMIC_RELEASE);
    return result;
  }

 private:
  struct Mapping {
    void* begin = nullptr;
    size_t bytes = 0;
  };
  Mapping map(size_t bytes, off_t offset) const {
    return {mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, offset), bytes};
  }
  static uint32_t& word(const Mapping& mapping, uint32_t offset) {
    return *reinterpret_cast<uint32_t*>(static_cast<char*>(mapping.begin) + offset);
  }

  int ring = -1;
  Mapping submitted, completed, entries;
  io_sqring_offsets submissions{};
  io_cqring_offsets completions{};
};
