// Calls in which the kernel accesses memory of the program that may be managed: the kernel's access to a page that the program may not
// access is an error (EFAULT), not a fault that could be served. So the pages are brought first. If another thread gives them to the device
// again before the call accesses them, the call is repeated with a buffer of ours instead, which is copied from or to the program's memory
// by touching it. Received data may be lost if the kernel cannot store them (a datagram, the count of an eventfd), so small receives use a
// buffer of ours immediately.
#pragma once

#include <limits.h>
#include <stdio.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace vgpu::client {

// The functions of managed memory that a call needs (touch-faults.h); tests have their own.
struct ManagedAccess {
  bool (*bring)(const void* memory, uint64_t bytes, bool writes);
  uint64_t (*bytesFrom)(const void* memory);
};

// Buffers of ours that replace the managed parts of `vectors`. Ends with the first vector of which only a part is managed: the call then
// moves fewer bytes, which is allowed.
class OwnVectors {
 public:
  OwnVectors(const iovec* vectors, size_t count, bool kernelWrites, const ManagedAccess& access) : isForKernel(kernelWrites) {
    for (size_t i = 0; i < count; ++i) {
      iovec given = vectors[i];
      const size_t bytes = std::min<uint64_t>(given.iov_len, access.bytesFrom(given.iov_base));
      programs.push_back({given.iov_base, bytes == 0 ? given.iov_len : bytes});
      pieces.push_back(bytes == 0 ? nullptr : std::make_unique_for_overwrite<char[]>(bytes));
      ours.push_back({bytes == 0 ? given.iov_base : pieces.back().get(), programs.back().iov_len});
      if (bytes != 0 && !kernelWrites) std::memcpy(pieces.back().get(), given.iov_base, bytes);
      if (bytes != 0 && bytes < given.iov_len) break;
    }
  }

  const iovec* data() const { return ours.data(); }
  size_t size() const { return ours.size(); }

  // Copies what the kernel has written to the program: `moved` bytes, starting with the first vector.
  void finish(size_t moved) const {
    for (size_t i = 0; isForKernel && i < ours.size() && moved != 0; ++i) {
      const size_t bytes = std::min(moved, ours[i].iov_len);
      if (pieces[i]) std::memcpy(programs[i].iov_base, pieces[i].get(), bytes);
      moved -= bytes;
    }
  }

 private:
  const bool isForKernel;
  std::vector<iovec> programs, ours;
  std::vector<std::unique_ptr<char[]>> pieces;
};

// Receives of at most this size use a buffer of ours immediately: larger than any datagram or record.
constexpr size_t mostReceivedAtOnce = 64 << 10;

// Makes `call(vectors, count)`, in which the kernel accesses the vectors' memory.
template <typename Call>
ssize_t accessedBy(const iovec* vectors, size_t count, bool kernelWrites, const ManagedAccess& access, Call&& call) {
  if (vectors == nullptr || count > IOV_MAX) return call(vectors, count);  // the kernel reports the error
  const int before = errno;
  size_t bytes = 0;
  bool isManaged = false;
  auto look = [&] {
    isManaged = access.bytesFrom(vectors) != 0;
    for (size_t i = 0; i < count; ++i) isManaged |= access.bytesFrom(vectors[i].iov_base) != 0;
  };
  auto callWithOwn = [&] {
    const OwnVectors own(vectors, count, kernelWrites, access);
    errno = before;
    const ssize_t result = call(own.data(), own.size());
    const int after = errno;
    if (result > 0) own.finish(static_cast<size_t>(result));
    errno = after;
    return result;
  };
  look();
  for (size_t i = 0; i < count && isManaged; ++i) bytes += vectors[i].iov_len;
  if (isManaged && kernelWrites && bytes <= mostReceivedAtOnce) return callWithOwn();
  for (size_t i = 0; i < count && isManaged; ++i) access.bring(vectors[i].iov_base, vectors[i].iov_len, kernelWrites);
  errno = before;
  const ssize_t result = call(vectors, count);
  if (result != -1 || errno != EFAULT) return result;
  look();  // it may have become managed meanwhile
  errno = EFAULT;
  return isManaged ? callWithOwn() : result;
}

// The same for a file of the C library, which moves large pieces by its own system calls: `move(memory, bytes)` moves some of them. Returns
// how many bytes were moved.
template <typename Byte, typename Move>
size_t movedBy(FILE* file, Byte* memory, size_t bytes, bool kernelWrites, const ManagedAccess& access, Move&& move) {
  constexpr size_t pieceBytes = 64 << 10;
  const bool hadFailed = ferror(file) != 0;
  const int before = errno;
  access.bring(memory, bytes, kernelWrites);
  errno = 0;
  size_t done = move(memory, bytes);
  int error = std::exchange(errno, before);
  const bool isRefused = done < bytes && error == EFAULT;
  if (isRefused && !hadFailed) clearerr(file);
  for (bool goesOn = isRefused; goesOn;) {
    const iovec rest{const_cast<char*>(static_cast<const char*>(memory)) + done, std::min(bytes - done, pieceBytes)};
    const OwnVectors own(&rest, 1, kernelWrites, access);
    const size_t wanted = own.data()->iov_len;
    errno = 0;
    const size_t moved = move(static_cast<Byte*>(own.data()->iov_base), wanted);
    error = std::exchange(errno, before);
    own.finish(moved);
    done += moved;
    goesOn = moved == wanted && done < bytes;
  }
  if (done < bytes && error != 0) errno = error;
  return done;
}

}  // namespace vgpu::client
