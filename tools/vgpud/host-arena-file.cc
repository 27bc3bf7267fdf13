#include "tools/vgpud/host-arena-file.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "tools/vgpud/sparse-pieces.h"
#include "vgpu/base/fail.h"
#include "vgpu/snapshot/checksum.h"
#include "vgpu/wire/arena.h"

namespace vgpu::daemon {
namespace {

constexpr char magic[] = {'v', 'g', 'p', 'u', 'a', 'r', 'n', 'a'};
constexpr uint64_t version = 1;
constexpr size_t checksumDigits = 32;

struct Head {
  char magic[8];
  uint64_t version;
};
struct PieceHead {
  uint64_t offset, bytes;
};

class Writer {
 public:
  explicit Writer(int file) : file(file) {}

  void write(kj::ArrayPtr<const kj::byte> bytes) {
    checksum.add(std::as_bytes(std::span(bytes.begin(), bytes.size())));
    append(bytes);
  }
  void end() {
    append(kj::StringPtr(checksum.text().c_str()).asBytes());
    KJ_SYSCALL(fsync(file));
  }

 private:
  void append(kj::ArrayPtr<const kj::byte> bytes) {
    writeAll(file, bytes, at, "pinned memory of a session");
    at += bytes.size();
  }

  const int file;
  uint64_t at = 0;
  snapshot::Checksum checksum;
};

class Reader {
 public:
  explicit Reader(std::string path) : path(std::move(path)), file(open(this->path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {
    if (file.get() < 0)
      fail(this->path + " cannot be opened: " + std::strerror(errno) +
           ". `vgpuctl machine save` writes it beside a session's snapshot");
  }

  void read(kj::ArrayPtr<kj::byte> room) {
    take(room);
    checksum.add(std::as_bytes(std::span(room.begin(), room.size())));
  }
  template <typename T>
  T read() {
    T value;
    read(kj::arrayPtr(&value, 1).asBytes());
    return value;
  }
  void end() {
    char digits[checksumDigits];
    take(kj::arrayPtr(digits, sizeof digits).asBytes());
    if (checksum.text() != std::string_view(digits, sizeof digits)) refuse("its checksum does not match");
  }
  [[noreturn]] void refuse(const std::string& why) const { fail("file " + path + ": " + why); }

 private:
  void take(kj::ArrayPtr<kj::byte> room) {
    while (room.size() > 0) {
      ssize_t got;
      KJ_SYSCALL(got = pread(file, room.begin(), room.size(), static_cast<off_t>(at)), path);
      if (got == 0) refuse("it is truncated");
      at += static_cast<uint64_t>(got);
      room = room.slice(static_cast<size_t>(got), room.size());
    }
  }

  const std::string path;
  const kj::AutoCloseFd file;
  uint64_t at = 0;
  snapshot::Checksum checksum;
};

}  // namespace

void saveHostArena(int arena, const std::string& directory) {
  const std::string path = directory + "/" + hostArenaFile;
  int fd;
  KJ_SYSCALL(fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), path);
  kj::AutoCloseFd file(fd);
  Writer writer(file);
  Head head{{}, version};
  std::memcpy(head.magic, magic, sizeof magic);
  writer.write(kj::arrayPtr(&head, 1).asBytes());
  for (uint64_t offset = 0;;) {
    const Piece piece = nextPiece(arena, offset);
    const PieceHead its{piece.bytes.size() == 0 ? 0 : piece.offset, piece.bytes.size()};
    writer.write(kj::arrayPtr(&its, 1).asBytes());
    if (piece.bytes.size() == 0) break;
    writer.write(piece.bytes);
    offset = piece.offset + piece.bytes.size();
  }
  writer.end();
}

void loadHostArena(const std::string& directory, int arena) {
  Reader reader(directory + "/" + hostArenaFile);
  const Head head = reader.read<Head>();
  if (std::memcmp(head.magic, magic, sizeof magic) != 0) reader.refuse("it does not contain the pinned memory of a session");
  if (head.version != version)
    reader.refuse("it is of version " + std::to_string(head.version) + ", this vgpu reads version " + std::to_string(version));
  auto room = kj::heapArray<kj::byte>(pieceBytes);
  for (;;) {
    const auto piece = reader.read<PieceHead>();
    if (piece.bytes == 0) break;
    if (piece.bytes > pieceBytes || piece.offset > hostArenaBytes || piece.offset + piece.bytes > hostArenaBytes)
      reader.refuse("a piece is larger than the whole");
    auto bytes = room.slice(0, piece.bytes);
    reader.read(bytes);
    writeAll(arena, bytes, piece.offset, "pinned memory of a session");
  }
  reader.end();
}

}  // namespace vgpu::daemon
