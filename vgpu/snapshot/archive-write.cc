#include <errno.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "vgpu/base/fail.h"
#include "vgpu/base/thread-group.h"
#include "vgpu/base/work-queue.h"
#include "vgpu/snapshot/archive-format.h"
#include "vgpu/snapshot/archive.h"
#include "vgpu/snapshot/stored-chunks.h"
#include "vgpu/store/disk-space.h"

namespace vgpu::snapshot {

namespace {

template <typename T>
std::span<const std::byte> asBytes(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

class Output {
 public:
  Output(int file, const std::string& name, std::function<void()> interrupted)
      : file(file), name(name), interrupted(std::move(interrupted)) {}

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      ssize_t count = ::write(file, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) {
        interrupted();
        continue;
      }
      if (count < 0) fail(fmt::format("cannot write {}: {}", name, writeProblem(errno, name, bytes.size())));
      bytes = bytes.subspan(static_cast<size_t>(count));
    }
  }
  void writeFile(std::span<const std::byte> bytes) {
    write(asBytes(uint64_t{bytes.size()}));
    write(bytes);
  }
  // Copies a file of the snapshot, verifying its checksum.
  void copyFile(const SnapshotReader& snapshot, const char* file, const FileSum& sum) {
    FileReader reader = snapshot.open(file, sum);
    write(asBytes(sum.bytes));
    std::vector<std::byte> piece;
    while (reader.left() > 0) {
      piece.resize(std::min<uint64_t>(reader.left(), archivePieceBytes));
      reader.read(piece);
      write(piece);
      interrupted();
    }
    reader.finish();
  }

 private:
  const int file;
  const std::string& name;
  const std::function<void()> interrupted;
};

// Threads read chunks; the calling thread writes them in order.
class OrderedReading {
 public:
  using Take = std::function<void(const LocatedChunk&, std::span<const std::byte> packed)>;

  OrderedReading(const ChunkStore& store, const std::vector<LocatedChunk>& chunks)
      : chunks(chunks), slots(2 * threadsFor(chunks.size())), arrived(slots.size()), threads([this] {
          unused.stop();
          arrived.stop();
        }) {
    for (auto& slot : slots) unused.push(&slot);
    for (unsigned thread = 0; thread < threadsFor(chunks.size()); ++thread) threads.start([this, &store] { read(store); });
  }

  void run(const Take& take) {
    threads.guard([&] {
      for (auto& chunk : chunks) {
        auto slot = arrived.take();
        if (!slot) return;  // a thread has failed
        take(chunk, **slot);
        unused.push(*slot);
      }
      unused.close();
    });
    threads.join();
  }

 private:
  using Slot = std::vector<std::byte>;

  // A thread takes the next chunk only when it has a slot. So the chunks between the first unwritten one and the last one taken never
  // outnumber the slots.
  void read(const ChunkStore& store) {
    StoredChunkReader reader(store);
    while (auto slot = unused.pop()) {
      size_t chunk = next++;
      if (chunk >= chunks.size()) return;
      reader.read(chunks[chunk], **slot);
      arrived.give(chunk, *slot);
    }
  }

  const std::vector<LocatedChunk>& chunks;
  std::vector<Slot> slots;
  std::atomic<size_t> next{0};
  WorkQueue<Slot*> unused;
  OrderedHandover<Slot*> arrived;
  ThreadGroup threads;  // destroyed first
};

}  // namespace

void writeArchive(ChunkStore& store, const std::string& directory, int out, const std::string& name,
                  const ArchiveProgress& progress) {
  SnapshotReader snapshot(directory);
  Manifest manifest = readManifest(snapshot);
  if (!manifest.packs.empty() || manifest.digestKey != store.key())
    snapshot.refuse(manifestFile, fmt::format("it is not in the store {}", store.path()));
  if (!manifest.pool.empty())
    fail(fmt::format("the memory of snapshot {} is in a vgpud's pinned memory, not on disk: resume it, and "
                     "suspend its session to the store",
                     directory));
  auto chunks = locate(store, storedChunksOf(readChunkList(snapshot, manifest)));
  uint64_t done = 0, all = bytesOf(chunks);

  Output output(out, name, [&] { progress(done, all); });
  output.write(asBytes(ArchiveHead{}));
  std::string text = snapshot.readManifest(maxManifestBytes);
  output.writeFile(std::as_bytes(std::span(text)));
  for (const char* file : archivedFiles) output.copyFile(snapshot, file, manifest.files.at(file));
  OrderedReading(store, chunks).run([&](const LocatedChunk& chunk, std::span<const std::byte> packed) {
    output.write(asBytes(ArchivedChunk{chunk.at.bytes, chunk.at.form}));
    output.write(packed);
    done += packed.size();
    progress(done, all);
  });
}

}  // namespace vgpu::snapshot
