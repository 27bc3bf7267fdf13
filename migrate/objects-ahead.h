// The message by which the source of a migration makes its target create objects while the program runs (chunk-stream.h).
//
//    ┌────────────┬─────────────────┬─────────────────────┬───────────────────────────────────┐
//    │ digest key │ bytes of tables │ tables (manifest.h) │ records (vgpu/snapshot/records.h) │
//    └────────────┴─────────────────┴─────────────────────┴───────────────────────────────────┘
//      16 bytes     8 bytes
//
// The tables are those of a snapshot that consists of these records alone, without a list of images: the rows of modules with variables,
// and the meaning of the numbers in the frames. The key is that of the digests with which images were sent.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "vgpu/objects/object-list.h"
#include "vgpu/snapshot/manifest.h"

namespace vgpu::migrate {

constexpr uint64_t mostObjectsAheadBytes = uint64_t{1} << 30;

struct ObjectsAhead {
  DigestKey key;
  snapshot::Tables tables;
  std::vector<ObjectRecord> records;
};

std::vector<std::byte> encodeObjects(const ObjectsAhead& objects);
// Throws kj::Exception that says what is invalid, or that it is of another build. Does not interpret the rows.
ObjectsAhead decodeObjects(std::span<const std::byte> message);

// Those of a session's records whose objects are worth making ahead (checkpoint/made-ahead.h), with everything that they need. `isSent`:
// whether the target has the image with that number.
std::vector<ObjectRecord> worthMakingAhead(std::vector<ObjectRecord> records, const std::function<bool(uint64_t image)>& isSent);

// Whether all frames of these records of a list were executed: every later cut then includes them all.
bool areExecuted(const std::vector<ObjectRecord>& records, const RingCut& executed);

}  // namespace vgpu::migrate
