// The memory that the kernel accesses through the arguments of a system call, or of a C library function that makes one: a row for each
// (intercept/libc/system-calls.inc). If a row gives the size of an argument in managed memory, the call is made with a copy of ours: so no
// thread can take the memory meanwhile, and no call is made twice. Large buffers are brought first instead (system-access.h), and so is
// memory that the kernel keeps using at its address, or whose size only the kernel knows.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "intercept/session/managed/system-access.h"
#include "vgpu/api/wire-value.h"

namespace vgpu::client {

using CallArguments = std::array<uint64_t, 6>;

// The size of the memory to which an argument points: fixed, or a multiple of another argument, a size_t (counted) or an int (few); the
// value of the socklen_t to which another argument points; or a set of as many bits as another argument says.
struct ArgumentBytes {
  enum class Rule : uint8_t { counted, few, pointed, bits };
  Rule rule = Rule::counted;
  uint8_t of = 6;  // index of that argument; 6: none
  uint32_t unit = 1;

  constexpr ArgumentBytes(uint32_t bytes) : unit(bytes) {}
  constexpr ArgumentBytes(Rule rule, uint8_t of, uint32_t unit) : rule(rule), of(of), unit(unit) {}
  uint64_t in(const CallArguments& arguments) const {
    if (of == 6) return unit;
    switch (rule) {
      case Rule::counted: return arguments[of] * unit;
      case Rule::few: return uint64_t{static_cast<uint32_t>(arguments[of])} * unit;  // the upper half of the register is undefined
      case Rule::pointed: return arguments[of] == 0 ? 0 : *fromWire<const socklen_t*>(arguments[of]);
      default: return (uint64_t{static_cast<uint32_t>(arguments[of])} + 63) / 64 * 8;
    }
  }
};
constexpr ArgumentBytes by(uint8_t argument, uint32_t unit = 1) { return {ArgumentBytes::Rule::counted, argument, unit}; }
constexpr ArgumentBytes few(uint8_t argument, uint32_t unit = 1) { return {ArgumentBytes::Rule::few, argument, unit}; }
constexpr ArgumentBytes at(uint8_t argument) { return {ArgumentBytes::Rule::pointed, argument, 1}; }
constexpr ArgumentBytes bits(uint8_t argument) { return {ArgumentBytes::Rule::bits, argument, 1}; }

struct CallArgument {
  enum class Use : uint8_t {
    value,                      // not a pointer, or one that the kernel does not follow
    text,                       // read up to its terminating zero
    in, out,                    // read; read and written
    place,                      // used at its address, with unknown size: up to the end of its page
    gives, takes,               // a large buffer, read or written
    givesVectors, takesVectors  // an array of such buffers; the next argument is their number
  };
  Use use = Use::value;
  ArgumentBytes bytes = 0;
};
constexpr CallArgument value{}, text{CallArgument::Use::text}, place{CallArgument::Use::place},
    givesVectors{CallArgument::Use::givesVectors}, takesVectors{CallArgument::Use::takesVectors};
constexpr CallArgument in(ArgumentBytes bytes) { return {CallArgument::Use::in, bytes}; }
constexpr CallArgument out(ArgumentBytes bytes) { return {CallArgument::Use::out, bytes}; }
constexpr CallArgument gives(uint8_t count) { return {CallArgument::Use::gives, by(count)}; }
constexpr CallArgument takes(uint8_t count) { return {CallArgument::Use::takes, by(count)}; }

using SystemCall = std::array<CallArgument, 6>;

// A copy of ours of the bytes at `program`, for use by a call. Changes are copied back when the call ends.
class OwnMemory {
 public:
  OwnMemory(void* program, uint64_t bytes, bool isWritten)
      : program(program), bytes(bytes), isWritten(isWritten), ours(std::make_unique_for_overwrite<char[]>(bytes)) {
    std::memcpy(ours.get(), program, bytes);
  }
  OwnMemory(OwnMemory&&) = default;
  // For memory that the kernel may write: nobody else writes it meanwhile.
  void finish() const {
    if (isWritten && std::memcmp(program, ours.get(), bytes) != 0) std::memcpy(program, ours.get(), bytes);
  }
  void* data() const { return ours.get(); }
  void* instead() const { return program; }

 private:
  void* program;
  uint64_t bytes;
  bool isWritten;
  std::unique_ptr<char[]> ours;
};

// Replaces a call's arguments in managed memory, if their size is known, by copies. An argument that extends beyond the end of its managed
// piece is left for the kernel to refuse.
class OwnArguments {
 public:
  OwnArguments(const SystemCall& row, CallArguments& arguments, const ManagedAccess& access) {
    const CallArguments given = arguments;
    for (size_t i = 0; i < row.size(); ++i) {
      using enum CallArgument::Use;
      const auto use = row[i].use;
      if (use != text && use != in && use != out) continue;
      auto* program = fromWire<char*>(given[i]);
      const uint64_t held = access.bytesFrom(program);
      if (held == 0) continue;
      const uint64_t bytes = use == text ? strnlen(program, held) + 1 : row[i].bytes.in(given);
      if (bytes == 0 || bytes > held) continue;
      pieces.emplace_back(program, bytes, use == out);
      arguments[i] = toWire(pieces.back().data());
    }
  }
  // The call's result for the program: a returned argument is translated back.
  uint64_t finish(uint64_t result) const {
    for (auto& piece : pieces) {
      piece.finish();
      if (result == toWire(piece.data())) result = toWire(piece.instead());
    }
    return result;
  }

 private:
  std::vector<OwnMemory> pieces;
};

// Makes `call(arguments)` after bringing all places in managed memory. Repeats this, up to a limit, while other threads take the pages
// before the kernel uses them.
template <typename Call>
uint64_t calledAtPlaces(const SystemCall& row, const CallArguments& arguments, const ManagedAccess& access, Call&& call) {
  constexpr uint64_t mostBytes = 4096;
  constexpr int mostTries = 1000;
  const int before = errno;
  for (int tries = 1;; ++tries) {
    bool isManaged = false;
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i].use != CallArgument::Use::place) continue;
      auto* memory = fromWire<const void*>(arguments[i]);
      const uint64_t bytes = std::min(access.bytesFrom(memory), mostBytes - arguments[i] % mostBytes);
      isManaged |= bytes != 0 && access.bring(memory, bytes, true);
    }
    errno = before;
    const uint64_t result = call(arguments);
    if (!isManaged || static_cast<int>(result) != -1 || errno != EFAULT || tries == mostTries) return result;
  }
}

// Makes `call(arguments)`, of which any may be in managed memory.
template <typename Call>
uint64_t calledWith(const SystemCall& row, CallArguments arguments, const ManagedAccess& access, Call&& call) {
  const int before = errno;
  const OwnArguments own(row, arguments, access);
  errno = before;
  uint64_t result = 0;
  size_t large = 0;
  while (large < row.size() && row[large].use < CallArgument::Use::gives) ++large;
  auto callWith = [&](const iovec* vectors, size_t count) {
    CallArguments changed = arguments;
    if (row[large].use >= CallArgument::Use::givesVectors) {
      changed[large] = toWire(vectors);
      changed[large + 1] = count;
    } else {
      changed[large] = toWire(vectors->iov_base);
      changed[row[large].bytes.of] = vectors->iov_len;
    }
    return static_cast<ssize_t>(call(changed));
  };
  if (large == row.size()) {
    result = calledAtPlaces(row, arguments, access, call);
  } else {
    const auto use = row[large].use;
    const bool kernelWrites = use == CallArgument::Use::takes || use == CallArgument::Use::takesVectors;
    if (use >= CallArgument::Use::givesVectors) {
      const auto* vectors = fromWire<const iovec*>(arguments[large]);
      const auto count = static_cast<uint32_t>(arguments[large + 1]);
      result = static_cast<uint64_t>(accessedBy(vectors, count, kernelWrites, access, callWith));
    } else {
      const iovec one{fromWire<void*>(arguments[large]), row[large].bytes.in(arguments)};
      result = static_cast<uint64_t>(accessedBy(&one, 1, kernelWrites, access, callWith));
    }
  }
  const int after = errno;
  result = own.finish(result);
  errno = after;
  return result;
}

// Makes `call(message)`, which sends or receives the message.
template <typename Call>
ssize_t movedMessage(msghdr* message, bool isReceived, const ManagedAccess& access, Call&& call) {
  if (message == nullptr) return call(message);
  const int before = errno;
  msghdr own = *message;
  std::vector<OwnMemory> pieces;
  auto replace = [&](void*& memory, uint64_t bytes) {
    if (bytes == 0 || bytes > access.bytesFrom(memory)) return;
    memory = pieces.emplace_back(memory, bytes, isReceived).data();
  };
  replace(own.msg_name, own.msg_namelen);
  replace(own.msg_control, own.msg_controllen);
  errno = before;
  const ssize_t result = accessedBy(own.msg_iov, own.msg_iovlen, isReceived, access, [&](const iovec* vectors, size_t count) {
    msghdr given = own;
    given.msg_iov = const_cast<iovec*>(vectors);
    given.msg_iovlen = count;
    const ssize_t moved = call(&given);
    if (isReceived && moved >= 0) {
      message->msg_namelen = given.msg_namelen;
      message->msg_controllen = given.msg_controllen;
      message->msg_flags = given.msg_flags;
    }
    return moved;
  });
  const int after = errno;
  for (auto& piece : pieces) piece.finish();
  errno = after;
  return result;
}

}  // namespace vgpu::client
