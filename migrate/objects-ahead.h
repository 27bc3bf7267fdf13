// The message with which the source of a migration has its target make objects while the program runs (chunk-stream.h).
//
//    ┌────────────┬─────────────────┬─────────────────────┬───────────────────────────────────┐
//    │ digest key │ bytes of tables │ tables (manifest.h) │ records (vgpu/snapshot/records.h) │
//    └────────────┴─────────────────┴─────────────────────┴───────────────────────────────────┘
//      16 bytes     8 bytes
//
// The tables are those of a snapshot that is made of these records alone, without a list of images: the rows of modules with variables,
// and what the numbers in the frames mean. The key is that of the digests with which images were sent.
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
// Throws kj::Exception that says what makes no sense, or is of another build. What rows mean is not looked at.
ObjectsAhead decodeObjects(std::span<const std::byte> message);

// Those of a session's records that are worth being made ahead (checkpoint/made-ahead.h), with all that they need. `isSent`: whether
// the target has the image of that number.
std::vector<ObjectRecord> worthMakingAhead(std::vector<ObjectRecord> records, const std::function<bool(uint64_t image)>& isSent);

// Whether all frames that these records have, of a list, were executed: a later cut has them all too.
bool areExecuted(const std::vector<ObjectRecord>& records, const RingCut& executed);

}  // namespace vgpu::migrate
