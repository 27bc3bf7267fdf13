// What a snapshot says of itself: plain values, kept as `manifest.json` — one JSON document, and behind it a line with
// the checksum of all before that line. docs/snapshot.md draws it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "vgpu/snapshot/snapshot-reader.h"
#include "vgpu/objects/state-table.h"

namespace vgpu::snapshot {

constexpr uint64_t snapshotVersion = 6;
constexpr uint64_t maxManifestBytes = uint64_t{64} << 20;

struct Identity {
  std::string session, name, program;
  int pid = 0;
  std::string reattach;  // the socket at which its program waits (tools/vgpud/state-directory.h)
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

// Where the arenas lie: part of every pointer the program holds.
struct ArenaMap {
  uint64_t deviceBase = 0, deviceBytes = 0, hostBase = 0, hostBytes = 0;
  bool operator==(const ArenaMap&) const = default;
};
ArenaMap arenasOfThisBuild();

struct Manifest {
  uint64_t version = snapshotVersion;
  std::string software;
  int64_t created = 0;  // Unix time, seconds
  Identity identity;
  std::vector<Device> devices;
  ArenaMap arenas;
  uint64_t barrier = 0, head = 0;  // the ring's: first frame not executed, end of the last one reserved
  uint64_t objectCount = 0;
  std::vector<SavedBlob> blobs;           // in the order of the file `blobs`
  StateTables state;                      // by kind; each row's bytes are in the file `bytes` (checkpoint/state.h)
  std::map<std::string, FileSum> files;   // by name, all of dataFiles
};

std::string encodeManifest(const Manifest& manifest);

// Who the snapshot in `directory` is of. Throws as readManifest() does, and keeps nothing else in memory: a daemon asks.
Identity readIdentity(const std::string& directory);

// The manifest of `directory`. Throws kj::Exception that names the check: checksum, format version, or the field. What rows of
// state mean is not looked at: requireValid() does, in state.h.
Manifest readManifest(const SnapshotReader& directory);

// A JSON text with the line that seals it.
std::string sealManifest(const std::string& json);

}  // namespace vgpu::snapshot
