// What a snapshot says of itself, kept as `manifest.json`: a small header, which says whose it is and of what size, and tables of
// any length. Each is a line of JSON with a line behind it that has the checksum of all before. docs/snapshot.md draws it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vgpu/snapshot/snapshot-reader.h"
#include "vgpu/objects/state-table.h"
#include "vgpu/snapshot/pending-calls.h"
#include "vgpu/store/chunk-digest.h"

namespace vgpu::snapshot {

constexpr uint64_t snapshotVersion = 21;
constexpr uint64_t maxHeaderBytes = uint64_t{64} << 10;  // with its seal
constexpr uint64_t maxManifestBytes = uint64_t{64} << 20;

struct Identity {
  std::string session, name, program;
  int pid = 0;
  unsigned owner = 0;    // the user whose worker wrote it
  std::string reattach;  // the socket at which its program waits (tools/vgpud/state-directory.h)
  std::vector<std::string> sharesWith;  // ids of the sessions that are resumed together with it, because they share (docs/ipc.md)
};

struct Device {
  std::string name, uuid;  // 32 hexadecimal digits
  uint64_t memoryBytes = 0;
  uint64_t capability = 0;  // major * 10 + minor
  double clock = 0;         // milliseconds since the session began
};

struct SavedBlob {
  uint64_t blob = 0, bytes = 0;
  bool operator==(const SavedBlob&) const = default;
};

// Of a snapshot that has its program's process as well (process-part.h): the list of that, and the bytes of its image.
struct ProcessSum {
  FileSum list;
  uint64_t imageBytes = 0;
};

// Where the arenas lie: part of every pointer the program holds.
struct ArenaMap {
  uint64_t deviceBase = 0, deviceBytes = 0, hostBase = 0, hostBytes = 0, mappedBase = 0, mappedBytes = 0;
  bool operator==(const ArenaMap&) const = default;
};
ArenaMap arenasOfThisBuild();

struct Header {
  uint64_t version = snapshotVersion;
  std::string software;
  int64_t created = 0;  // Unix time, seconds
  Identity identity;
  std::vector<Device> devices;
  ArenaMap arenas;
  std::vector<RingState> rings;  // those that have been used, by device
  uint64_t objectCount = 0, deviceBytes = 0;
  std::map<std::string, FileSum> files;  // by name, all of dataFiles
  std::vector<uint64_t> packs;           // bytes of each; none of a snapshot in a store
  DigestKey digestKey;                   // of the chunks
  std::string pool;                      // the pinned memory that has chunks which no file has; empty: there are none such
  std::optional<ProcessSum> process;
};

// Of all its files but the manifest.
uint64_t storedBytes(const Header& header);

// What a worker needs to make objects, of a snapshot or of a part of one.
struct Tables {
  std::vector<SavedBlob> blobs;  // in the order of their chunks, which come first
  StateTables state;             // by kind; the chunks of each row's bytes come next (checkpoint/state.h)
  std::map<uint16_t, std::string> methods;  // that its frames use, by number (methods.h)
  std::map<uint64_t, std::string> libraryCalls;  // of libraries, by signature: the symbol (library-calls.h)
};

struct Manifest : Header, Tables {};

RingCut barrierOf(const Header& header);

std::string encodeManifest(const Manifest& manifest);

// The tables alone, without the end of their line; parseTables() refuses what makes no sense, as readManifest() does.
std::string encodeTables(const Tables& tables);
Tables parseTables(std::string_view text, const Refusal& refusal);

// The header of the snapshot in `directory`, for who decides whether to resume it; reads maxHeaderBytes at most. Throws
// kj::Exception that names the check: checksum, format version, or the field.
Header readHeader(const SnapshotReader& directory);

// What the header says of files beside it, by name, whichever version it has: so that damage is found also in a snapshot of
// another version. Throws in the same way.
std::map<std::string, FileSum> readFileSums(const SnapshotReader& directory);

// All of the manifest. Throws in the same way. What rows of state mean is not looked at: a worker does (checkpoint/state.h).
Manifest readManifest(const SnapshotReader& directory);

// Refuses the manifest of a snapshot. The snapshot must live longer.
Refusal refusalOf(const SnapshotReader& directory);
// The same of its text.
Manifest parseManifest(std::string_view text, const Refusal& refusal);

// Two JSON texts, each with the line that seals it.
std::string sealManifest(const std::string& header, const std::string& tables);
// The line behind `text`, which ends with a line.
std::string sealOf(std::string_view text);

}  // namespace vgpu::snapshot
