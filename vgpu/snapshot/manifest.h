// The manifest of a snapshot, `manifest.json`: a small header with the owner and the sizes, and tables of any length. Each is a line of
// JSON followed by a line with the checksum of everything before it. docs/snapshot.md draws it.
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
constexpr uint64_t maxHeaderBytes = uint64_t{64} << 10;  // including the checksum line
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

// For a snapshot that also has its program's process (process-part.h): the list of the process part, and the bytes of its image.
struct ProcessSum {
  FileSum list;
  uint64_t imageBytes = 0;
};

// Where the arenas lie: these addresses are in every pointer that the program holds.
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
  std::vector<RingState> rings;  // the rings that have been used, by device
  uint64_t objectCount = 0, deviceBytes = 0;
  std::map<std::string, FileSum> files;  // by name: one for each of dataFiles
  std::vector<uint64_t> packs;           // bytes of each; empty for a snapshot in a store
  DigestKey digestKey;                   // of the chunks
  std::string pool;                      // the pinned memory that holds chunks that no file has; empty if there are no such chunks
  std::optional<ProcessSum> process;
};

// Bytes of all its files except the manifest.
uint64_t storedBytes(const Header& header);

// What a worker needs to make the objects of a snapshot, or of a part of one.
struct Tables {
  std::vector<SavedBlob> blobs;  // in the order of their chunks, which come first in the list of chunks
  StateTables state;             // by kind; the chunks of each row's bytes come next (checkpoint/state.h)
  std::map<uint16_t, std::string> methods;  // the methods that its frames use, by number (methods.h)
  std::map<uint64_t, std::string> libraryCalls;  // the library functions that its frames call: signature to symbol (library-calls.h)
};

struct Manifest : Header, Tables {};

RingCut barrierOf(const Header& header);

std::string encodeManifest(const Manifest& manifest);

// The tables alone, without the line's end; parseTables() refuses invalid content as readManifest() does.
std::string encodeTables(const Tables& tables);
Tables parseTables(std::string_view text, const Refusal& refusal);

// Reads the header of the snapshot in `directory`, for deciding whether to resume it; reads at most maxHeaderBytes. Throws kj::Exception
// that names the failed check: checksum, format version, or the field.
Header readHeader(const SnapshotReader& directory);

// The sums of the other files by name, from a header of any version, so that damage is detected also in a snapshot of another version.
// Throws as readHeader() does.
std::map<std::string, FileSum> readFileSums(const SnapshotReader& directory);

// Reads all of the manifest. Throws as readHeader() does. Does not interpret the rows of state: a worker does (checkpoint/state.h).
Manifest readManifest(const SnapshotReader& directory);

// A function that refuses the manifest of a snapshot, which must outlive it.
Refusal refusalOf(const SnapshotReader& directory);
// As readManifest(), from the manifest's text.
Manifest parseManifest(std::string_view text, const Refusal& refusal);

// Joins two JSON texts, each followed by its checksum line.
std::string sealManifest(const std::string& header, const std::string& tables);
// The checksum line for `text`, which ends with a newline.
std::string sealOf(std::string_view text);

}  // namespace vgpu::snapshot
