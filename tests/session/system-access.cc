#include "intercept/session/managed/system-access.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

#include "vgpu/api/wire-value.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

// "Managed" memory that another thread always takes away before the kernel accesses it.
std::array<char, 100'000> taken;

bool isTaken(const void* memory) { return memory >= taken.data() && memory < taken.data() + taken.size(); }

constexpr ManagedAccess takenAccess{[](const void* memory, uint64_t, bool) { return isTaken(memory); },
                                    [](const void* memory) -> uint64_t {
                                      return isTaken(memory) ? taken.data() + taken.size() - static_cast<const char*>(memory) : 0;
                                    }};

// As the kernel does for memory that the program may not access.
bool isRefused(const void* memory) {
  if (isTaken(memory)) errno = EFAULT;
  return isTaken(memory);
}

// System calls on a pipe.
class Pipe {
 public:
  Pipe() { REQUIRE(pipe(ends) == 0); }
  ~Pipe() {
    for (int end : ends) close(end);
  }
  ssize_t write(const iovec* vectors, size_t count) {
    for (size_t i = 0; i < count; ++i)
      if (isRefused(vectors[i].iov_base)) return -1;
    return writev(ends[1], vectors, static_cast<int>(count));
  }
  ssize_t read(const iovec* vectors, size_t count) {
    for (size_t i = 0; i < count; ++i)
      if (isRefused(vectors[i].iov_base)) return -1;
    return readv(ends[0], vectors, static_cast<int>(count));
  }

 private:
  int ends[2];
};

}  // namespace

TEST_CASE("a system call moves managed memory, although another thread takes it away whenever it was fetched") {
  Pipe pipe;
  std::string own = "own, ", back(9, ' ');
  std::string_view("managed").copy(taken.data(), taken.size());
  const iovec out[] = {{own.data(), own.size()}, {taken.data(), 7}};
  errno = 3;
  CHECK(accessedBy(out, 2, false, takenAccess, [&](auto* vectors, size_t count) { return pipe.write(vectors, count); }) == 12);
  CHECK(errno == 3);
  taken.fill(' ');
  const iovec in[] = {{back.data(), 3}, {taken.data() + 50, 9}};
  CHECK(accessedBy(in, 2, true, takenAccess, [&](auto* vectors, size_t count) { return pipe.read(vectors, count); }) == 12);
  CHECK(back.substr(0, 3) == "own");
  CHECK(std::string_view(taken.data() + 49, 11) == " , managed ");
}

TEST_CASE("a system call beyond the end of managed memory moves only the managed bytes") {
  Pipe pipe;
  taken.fill('x');
  const iovec out{taken.data() + taken.size() - 10, 4096};
  CHECK(accessedBy(&out, 1, false, takenAccess, [&](auto* vectors, size_t count) { return pipe.write(vectors, count); }) == 10);
}

TEST_CASE("a system call moves memory that becomes managed while the kernel accesses it") {
  static bool isManaged = false;
  const ManagedAccess later{[](const void*, uint64_t, bool) { return isManaged; },
                            [](const void*) -> uint64_t { return isManaged ? taken.size() : 0; }};
  Pipe pipe;
  std::string_view("late").copy(taken.data(), taken.size());
  const iovec out{taken.data(), 4};
  auto becomesManaged = [&](auto* vectors, size_t count) {
    isManaged = true;
    return pipe.write(vectors, count);
  };
  CHECK(accessedBy(&out, 1, false, later, becomesManaged) == 4);
  char back[4];
  const iovec in{back, 4};
  CHECK(pipe.read(&in, 1) == 4);
  CHECK(std::string_view(back, 4) == "late");
}

TEST_CASE("data that the kernel might fail to store in managed memory is received once, into a buffer of the session") {
  taken.fill(' ');
  int calls = 0;
  auto receive = [&](const iovec* vectors, size_t) {
    ++calls;
    if (isRefused(vectors->iov_base)) return ssize_t{-1};  // the datagram would be lost
    return static_cast<ssize_t>(std::string_view("datagram").copy(static_cast<char*>(vectors->iov_base), vectors->iov_len));
  };
  const iovec in{taken.data(), 100};
  CHECK(accessedBy(&in, 1, true, takenAccess, receive) == 8);
  CHECK(calls == 1);
  CHECK(std::string_view(taken.data(), 9) == "datagram ");
}

TEST_CASE("the kernel reads vectors that lie in managed memory themselves") {
  Pipe pipe;
  char byte = 'v';
  auto* out = reinterpret_cast<iovec*>(taken.data() + 64 - toWire(taken.data()) % 16);
  *out = {&byte, 1};
  auto write = [&](const iovec* vectors, size_t count) { return isRefused(vectors) ? -1 : pipe.write(vectors, count); };
  CHECK(accessedBy(out, 1, false, takenAccess, write) == 1);
}

TEST_CASE("an access of other memory that the kernel refuses is refused") {
  int calls = 0;
  char byte;
  const iovec other{&byte, 1};
  auto refuse = [&](auto*, size_t) -> ssize_t { return ++calls, errno = EFAULT, -1; };
  CHECK(accessedBy(&other, 1, true, takenAccess, refuse) == -1);
  CHECK(errno == EFAULT);
  CHECK(calls == 1);
}

TEST_CASE("a C library stream moves all of managed memory, although another thread takes it away whenever it was fetched") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  for (size_t i = 0; i < taken.size(); ++i) taken[i] = static_cast<char>(i % 101);
  auto put = [&](const char* memory, size_t bytes) { return isRefused(memory) ? 0 : std::fwrite(memory, 1, bytes, file); };
  auto get = [&](char* memory, size_t bytes) { return isRefused(memory) ? 0 : std::fread(memory, 1, bytes, file); };
  CHECK(movedBy(file, static_cast<const char*>(taken.data()), taken.size(), false, takenAccess, put) == taken.size());
  std::rewind(file);
  taken.fill(0);
  CHECK(movedBy(file, taken.data(), taken.size(), true, takenAccess, get) == taken.size());
  size_t wrong = 0;
  for (size_t i = 0; i < taken.size(); ++i) wrong += taken[i] != static_cast<char>(i % 101);
  CHECK(wrong == 0);
  CHECK(movedBy(file, taken.data(), taken.size(), true, takenAccess, get) == 0);  // end of file
  CHECK(std::feof(file) != 0);
  std::fclose(file);
}
