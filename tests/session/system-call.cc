#include "intercept/session/managed/system-call.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

using namespace vgpu;
using namespace vgpu::client;

namespace {

// "Managed" memory that a call never finds in place, because other threads always take it away; its bytes stay.
struct Piece {
  char bytes[1000] = {};
} piece;

bool isIn(const void* memory) { return memory >= piece.bytes && memory < piece.bytes + sizeof piece.bytes; }

int brings = 0;
constexpr ManagedAccess pieceAccess{
    [](const void* memory, uint64_t, bool) {
      brings += isIn(memory) ? 1 : 0;
      return isIn(memory);
    },
    [](const void* memory) -> uint64_t {
      return isIn(memory) ? piece.bytes + sizeof piece.bytes - static_cast<const char*>(memory) : 0;
    }};

char* put(size_t place, std::string_view text) {
  text.copy(piece.bytes + place, text.size());
  piece.bytes[place + text.size()] = 0;
  return piece.bytes + place;
}

// Executes `row` with these arguments; the arguments that `call` gets contain no managed memory.
template <typename Call>
uint64_t called(const SystemCall& row, CallArguments arguments, Call&& call) {
  return calledWith(row, arguments, pieceAccess, [&](const CallArguments& given) -> uint64_t {
    for (size_t i = 0; i < given.size(); ++i)
      if (row[i].use != CallArgument::Use::place) CHECK_FALSE(isIn(fromWire<void*>(given[i])));
    return call(given);
  });
}

}  // namespace

TEST_CASE("a call reads text and structures, and writes structures, of managed memory through buffers of the session") {
  piece = {};
  constexpr SystemCall row{text, in(4), out(4), value};
  const CallArguments arguments{toWire(put(0, "name")), toWire(put(100, "abcd")), toWire(put(200, "1234567")), 42};
  errno = 3;
  CHECK(called(row, arguments, [](const CallArguments& given) {
          CHECK(std::string_view(fromWire<char*>(given[0])) == "name");
          CHECK(std::string_view(fromWire<char*>(given[1]), 4) == "abcd");
          CHECK(given[3] == 42);
          std::string_view("xx").copy(fromWire<char*>(given[1]), 2);
          std::string_view("back").copy(fromWire<char*>(given[2]), 4);
          CHECK(errno == 3);
          return 7;
        }) == 7);
  CHECK(std::string_view(piece.bytes + 100) == "abcd");
  CHECK(std::string_view(piece.bytes + 200) == "back567");
}

TEST_CASE("a size is another argument, or the word that it points to; of an int only the lower half counts") {
  piece = {};
  constexpr SystemCall counted{value, out(few(2, 3)), value}, pointed{out(at(1)), out(4)}, set{value, out(bits(0))};
  auto write = [](size_t argument, size_t bytes) {
    return [=](const CallArguments& given) {
      std::memset(fromWire<char*>(given[argument]), 'x', bytes);
      return 0;
    };
  };
  called(counted, {0, toWire(piece.bytes), (uint64_t{77} << 32) | 5}, write(1, 15));
  CHECK(std::string_view(piece.bytes).size() == 15);
  socklen_t bytes = 21;
  called(pointed, {toWire(piece.bytes), toWire(&bytes)}, write(0, 21));
  CHECK(std::string_view(piece.bytes).size() == 21);
  called(set, {(uint64_t{77} << 32) | 65, toWire(piece.bytes + 100)}, write(1, 16));
  CHECK(std::string_view(piece.bytes + 100).size() == 16);
}

TEST_CASE("a call that returns one of its arguments returns the program's pointer") {
  piece = {};
  constexpr SystemCall row{out(by(1))};
  CHECK(called(row, {toWire(piece.bytes), 64}, [](const CallArguments& given) { return given[0]; }) == toWire(piece.bytes));
}

TEST_CASE("if a buffer extends beyond managed memory, the kernel refuses it") {
  constexpr SystemCall row{out(by(1))};
  const CallArguments arguments{toWire(piece.bytes + 900), 200};
  CHECK(calledWith(row, arguments, pieceAccess, [&](const CallArguments& given) -> uint64_t {
          CHECK(given == arguments);
          errno = EFAULT;
          return UINT64_MAX;
        }) == UINT64_MAX);
  CHECK(errno == EFAULT);
}

TEST_CASE("memory is fetched again each time another thread has taken it away, and other errors are returned") {
  constexpr SystemCall row{value, place};
  int calls = 0;
  brings = 0;
  auto call = [&](const CallArguments&) -> uint64_t {
    if (++calls == 3) return 9;
    errno = EFAULT;
    return UINT64_MAX;
  };
  CHECK(called(row, {1, toWire(piece.bytes)}, call) == 9);
  CHECK(brings == 3);
  calls = 0;
  CHECK(called(row, {1, 2}, call) == UINT64_MAX);
  CHECK(calls == 1);
}

TEST_CASE("a message is sent and received with its name and its control data") {
  piece = {};
  iovec vectors{put(0, "text"), 4};
  msghdr message{put(100, "name"), 4, &vectors, 1, put(200, "beside"), 6, 0};
  CHECK(movedMessage(&message, false, pieceAccess, [&](msghdr* given) -> ssize_t {
          CHECK(std::string_view(static_cast<char*>(given->msg_name), 4) == "name");
          CHECK(std::string_view(static_cast<char*>(given->msg_control), 6) == "beside");
          CHECK_FALSE(isIn(given->msg_control));
          if (!isIn(given->msg_iov->iov_base)) return 4;
          errno = EFAULT;
          return -1;
        }) == 4);
  CHECK(movedMessage(&message, true, pieceAccess, [&](msghdr* given) -> ssize_t {
          CHECK_FALSE(isIn(given->msg_iov->iov_base));
          std::string_view("from").copy(static_cast<char*>(given->msg_name), 4);
          std::string_view("near").copy(static_cast<char*>(given->msg_control), 4);
          given->msg_controllen = 4;
          given->msg_flags = MSG_TRUNC;
          return 0;
        }) == 0);
  CHECK(std::string_view(piece.bytes + 100) == "from");
  CHECK(std::string_view(piece.bytes + 200, 4) == "near");
  CHECK(message.msg_controllen == 4);
  CHECK(message.msg_flags == MSG_TRUNC);
}
