#include "tools/vgpud/arrival-files.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "tools/common/descriptor.h"
#include "tools/vgpud/sparse-pieces.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/text.h"

namespace vgpu::daemon {
namespace {

namespace fs = std::filesystem;

constexpr const char* brought = "the files of a session that arrives from another host";

// Names of snapshot files are of this form; none leads out of the folder.
bool isPlainName(const std::string& name) {
  return name.size() <= 64 && name[0] != '.' &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") == std::string::npos;
}

using NextPiece = std::function<Piece(uint64_t offset)>;

// Sends what `next` returns for a file, from `offset` on, piece by piece.
kj::Promise<void> sendPieces(FileWork& files, control::Arrival::Client arrival, std::string name, NextPiece next, uint64_t offset = 0) {
  return files.run([next, offset] { return next(offset); })
      .then([&files, arrival, name = std::move(name), next](Piece&& piece) mutable -> kj::Promise<void> {
        if (piece.bytes.size() == 0) return kj::READY_NOW;
        auto request = arrival.putRequest();
        request.setFile(reader(name));
        request.setOffset(piece.offset);
        request.setBytes(piece.bytes);
        const uint64_t end = piece.offset + piece.bytes.size();
        return request.send().then([&files, arrival, name = std::move(name), next, end]() mutable {
          return sendPieces(files, kj::mv(arrival), std::move(name), std::move(next), end);
        });
      });
}

struct OpenFile {
  std::string name;
  std::shared_ptr<kj::AutoCloseFd> file;
};

kj::Array<OpenFile> openAll(const std::string& folder) {
  kj::Vector<OpenFile> all;
  for (auto& entry : fs::directory_iterator(folder)) {
    int fd;
    KJ_SYSCALL(fd = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW), entry.path().c_str());
    all.add(OpenFile{entry.path().filename(), std::make_shared<kj::AutoCloseFd>(fd)});
  }
  return all.releaseAsArray();
}

}  // namespace

kj::Promise<void> ArrivalFiles::open(std::string in, std::string name) {
  int fd;
  KJ_SYSCALL(fd = memfd_create("vgpu-arriving", MFD_CLOEXEC));
  arena = std::make_shared<kj::AutoCloseFd>(fd);
  return directory.make(files, std::move(in), std::move(name), getpid()).then([this] { return folder->open(path()); }).ignoreResult();
}

kj::Promise<void> ArrivalFiles::put(std::string file, uint64_t offset, kj::Array<kj::byte> bytes) {
  return files.run([arena = arena, path = path(), file = std::move(file), offset, bytes = kj::mv(bytes)] {
    if (file.empty()) {
      writeAll(*arena, bytes, offset, brought);
      return;
    }
    if (!isPlainName(file)) fail("a snapshot does not contain a file \"" + file + "\"");
    int fd;
    KJ_SYSCALL(fd = ::open((path + "/" + file).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), file.c_str());
    writeAll(kj::AutoCloseFd(fd), bytes, offset, brought);
  });
}

kj::Promise<void> ArrivalFiles::fillArena(int to) {
  return files.run([arena = arena, to = duplicate(to)] {
    for (uint64_t offset = 0;;) {
      auto piece = nextPiece(*arena, offset);
      if (piece.bytes.size() == 0) return;
      writeAll(to, piece.bytes, piece.offset, brought);
      offset = piece.offset + piece.bytes.size();
    }
  });
}

kj::Promise<StateDirectory::Shared> ArrivalFiles::discard() {
  return folder->discard().then([this] { return directory.take(); });
}

DepartingFiles::DepartingFiles(FileWork& files, std::string folder, kj::AutoCloseFd arena)
    : files(files),
      folder(std::move(folder)),
      arena(arena.get() < 0 ? nullptr : std::make_shared<ChangedPieces>(kj::mv(arena))) {}

kj::Promise<void> DepartingFiles::sendAhead(control::Arrival::Client arrival) {
  if (arena == nullptr) return kj::READY_NOW;
  auto changed = [arena = arena](uint64_t offset) { return arena->next(offset); };
  return sendPieces(files, kj::mv(arrival), "", changed);
}

kj::Promise<void> DepartingFiles::sendRest(control::Arrival::Client arrival) {
  return sendAhead(arrival)
      .then([this] { return files.run([folder = folder] { return openAll(folder); }); })
      .then([this, arrival](kj::Array<OpenFile>&& all) mutable {
        auto parts = kj::heapArrayBuilder<kj::Promise<void>>(all.size());
        for (auto& one : all) {
          auto next = [file = one.file](uint64_t offset) { return nextPiece(*file, offset); };
          parts.add(sendPieces(files, arrival, one.name, next));
        }
        return kj::joinPromises(parts.finish());
      });
}

}  // namespace vgpu::daemon
