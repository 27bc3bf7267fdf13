#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/base/thread-group.h"
#include "vgpu/base/work-queue.h"
#include "vgpu/snapshot/archive-format.h"
#include "vgpu/snapshot/archive.h"
#include "vgpu/snapshot/chunk-sink.h"
#include "vgpu/snapshot/packer.h"
#include "vgpu/snapshot/stored-chunks.h"

namespace vgpu::snapshot {

class ArchiveReader::Input {
 public:
  Input(int file, std::string name) : file(file), name(std::move(name)) {}

  // Message: "archive NAME: `check`".
  [[noreturn]] void refuse(const std::string& check) const { fail(fmt::format("archive {}: {}", name, check)); }

  // Reads until `out` is full or the stream ends.
  size_t readSome(std::span<std::byte> out) {
    size_t total = 0;
    while (total < out.size()) {
      awaitBytes();
      ssize_t count = ::read(file, out.data() + total, out.size() - total);
      if (count < 0 && errno == EINTR) interrupted();
      else if (count < 0) refuse(fmt::format("cannot be read: {}", strerror(errno)));
      else if (count == 0) break;
      else total += static_cast<size_t>(count);
    }
    return total;
  }
  // A signal may come just before a read that then blocks on the writer of a pipe, so this waits with a timeout, again and again.
  void awaitBytes() const {
    pollfd wanted{file, POLLIN, 0};
    for (int ready = 0; ready == 0 || (ready < 0 && errno == EINTR);)
      if (ready = poll(&wanted, 1, 100); ready <= 0) interrupted();
  }
  void read(std::span<std::byte> out, const char* what) {
    if (readSome(out) != out.size()) refuse(fmt::format("{}: the archive ends before or within it; the file was truncated", what));
  }
  template <typename T>
  T read(const char* what) {
    T value{};
    read(std::as_writable_bytes(std::span(&value, 1)), what);
    return value;
  }

  void readHead() {
    ArchiveHead head{}, expected{};
    if (readSome(std::as_writable_bytes(std::span(&head, 1))) != sizeof head ||
        memcmp(head.magic, expected.magic, sizeof head.magic) != 0)
      refuse("it is not an exported snapshot");
    if (head.version != archiveVersion)
      refuse(fmt::format("format version {}, and this build ({}) reads version {}; import it with the version that wrote it",
                         head.version, VGPU_VERSION, archiveVersion));
    if (head.unused != 0) refuse("its head was altered or damaged");
  }
  std::string readText(const char* what, uint64_t mostBytes) {
    auto bytes = read<uint64_t>(what);
    if (bytes > mostBytes) refuse(fmt::format("{}: length: {} bytes, at most {} are read", what, bytes, mostBytes));
    std::string text(bytes, 0);
    read(std::as_writable_bytes(std::span(text)), what);
    return text;
  }
  // Reads a file that must match `sum` from the manifest, piece by piece.
  void readFile(const char* what, const FileSum& sum, const std::function<void(std::span<const std::byte>)>& take) {
    if (auto bytes = read<uint64_t>(what); bytes != sum.bytes)
      refuse(fmt::format("{}: length: {} bytes are expected, {} are found", what, sum.bytes, bytes));
    Checksum checksum;
    std::vector<std::byte> piece;
    for (uint64_t left = sum.bytes; left > 0; left -= piece.size()) {
      piece.resize(std::min<uint64_t>(left, archivePieceBytes));
      read(piece, what);
      checksum.add(piece);
      take(piece);
      interrupted();
    }
    if (checksum.text() != sum.checksum)
      refuse(fmt::format("{}: checksum: {} is expected, {} is found; the file was altered or damaged", what, sum.checksum,
                         checksum.text()));
  }
  void requireEnd() {
    std::byte more;
    if (readSome({&more, 1}) != 0) refuse("there is data after its end");
  }

  std::function<void()> interrupted = [] {};

 private:
  const int file;
  const std::string name;
};

// The chunks on their way into the store: the calling thread reads; the other threads verify, digest with the store's key, and write those
// that the store does not have.
class ArchiveReader::Chunks {
 public:
  Chunks(Input& input, const Digester& before, const std::vector<ChunkName>& names, ChunkSink& sink)
      : input(input), before(before), names(names), sink(sink), slots(2 * threadsFor(names.size())), threads([this] {
          unused.stop();
          filled.stop();
        }) {
    for (auto& slot : slots) unused.push(&slot);
    for (unsigned thread = 0; thread < threadsFor(names.size()); ++thread)
      threads.start([this, thread] {
        std::vector<std::byte> bytes;
        while (auto slot = filled.pop()) {
          take(**slot, thread, bytes);
          unused.push(*slot);
        }
        this->sink.finish(thread);
      });
  }

  void run(const std::function<void(uint64_t packed)>& read) {
    threads.guard([&] {
      for (size_t chunk = 0; chunk < names.size(); ++chunk) {
        auto slot = unused.pop();
        if (!slot) return;  // a thread has failed
        fill(**slot, chunk);
        filled.push(*slot);
        read((*slot)->packed.size());
      }
      filled.close();
    });
    threads.join();
  }

 private:
  struct Slot {
    size_t chunk = 0;
    Form form = Form::plain;
    std::vector<std::byte> packed;
  };

  void fill(Slot& slot, size_t chunk) {
    auto head = input.read<ArchivedChunk>("chunks");
    slot.chunk = chunk;
    slot.form = static_cast<Form>(head.form);
    bool isKnown = slot.form == Form::plain || slot.form == Form::zstd;
    if (!isKnown || head.bytes == 0 || head.bytes > packedMost())
      input.refuse(fmt::format("chunk {}: its form or its size is invalid; the file was altered or damaged", chunk));
    slot.packed.resize(head.bytes);
    input.read(slot.packed, "chunks");
  }

  void take(const Slot& slot, unsigned writer, std::vector<std::byte>& bytes) {
    auto& name = names[slot.chunk];
    bytes.resize(name.bytes);
    if (!unpack(slot.form, slot.packed, bytes) || before(bytes) != name.digest)
      input.refuse(fmt::format("chunk {}: its digest does not match; the file was altered or damaged", slot.chunk));
    if (!sink.has(slot.chunk, sink.digester(bytes), bytes.size())) sink.add(writer, slot.chunk, bytes, true);
  }

  Input& input;
  const Digester& before;
  const std::vector<ChunkName>& names;
  ChunkSink& sink;
  std::vector<Slot> slots;
  WorkQueue<Slot*> unused, filled;
  ThreadGroup threads;  // destroyed first
};

ArchiveReader::ArchiveReader(int in, std::string name, ArchiveProgress report)
    : input(std::make_unique<Input>(in, std::move(name))), progress(std::move(report)) {
  input->interrupted = [this] { progress(0, 0); };
  input->readHead();
  snapshot = parseManifest(input->readText(manifestFile, maxManifestBytes),
                           [this](const std::string& check) { input->refuse(fmt::format("{}: {}", manifestFile, check)); });
  if (!snapshot.packs.empty() || !snapshot.pool.empty())
    input->refuse(fmt::format("{}: packs: the snapshot does not come from a store of snapshots", manifestFile));
}
ArchiveReader::~ArchiveReader() = default;

ArchiveReader::Imported ArchiveReader::importInto(ChunkStore& store, const std::string& directory) {
  uint64_t done = 0;
  input->interrupted = [&] { progress(done, 0); };
  SnapshotWriter writer(directory);
  std::vector<std::byte> list;
  for (const char* file : archivedFiles) {
    auto& sum = snapshot.files.at(file);
    if (file == chunksFile) {
      if (sum.bytes > maxChunkListBytes)
        input->refuse(fmt::format("{}: length: {} bytes, at most {} are read", file, sum.bytes, maxChunkListBytes));
      input->readFile(file, sum, [&](std::span<const std::byte> piece) { list.insert(list.end(), piece.begin(), piece.end()); });
    } else {
      FileWriter copy = writer.create(file);
      input->readFile(file, sum, [&](std::span<const std::byte> piece) { copy.write(piece); });
      copy.finish();
    }
  }
  std::vector<ChunkPlace> places;
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { places = decodeChunks(list, {}); }))
    input->refuse(fmt::format("{}: {}", chunksFile, exception->getDescription().cStr()));
  auto names = storedChunksOf(places);

  ChunkSink sink(store);
  sink.reserve(names.size());
  Digester before(snapshot.digestKey);
  Chunks(*input, before, names, sink).run([&](uint64_t packed) { progress(done += packed, 0); });
  input->requireEnd();
  faultPoint("import.read");

  auto now = sink.places();
  std::map<ChunkName, ChunkPlace> renamed;
  for (size_t chunk = 0; chunk < names.size(); ++chunk) renamed[names[chunk]] = now[chunk];
  for (auto& place : places) place = place.form == Form::stored ? renamed.at({place.digest, place.offset}) : ChunkPlace{};
  snapshot.files[chunksFile] = writer.write(chunksFile, encodeChunks(places));
  snapshot.digestKey = store.key();
  sink.commit();
  writer.publish(encodeManifest(snapshot));
  return {names.size(), sink.writtenBytes()};
}

}  // namespace vgpu::snapshot
