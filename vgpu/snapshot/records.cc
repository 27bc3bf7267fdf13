#include "vgpu/snapshot/records.h"

#include <kj/debug.h>

#include <cstring>

#include "vgpu/objects/record-format.h"

namespace vgpu::snapshot {

std::vector<std::byte> encodeRecords(const std::vector<ObjectRecord>& records) {
  std::vector<std::byte> out;
  for (auto& record : records) {
    auto words = encodeRecord(record);
    auto bytes = words.asBytes();
    uint32_t size = static_cast<uint32_t>(bytes.size());
    size_t at = out.size();
    out.resize(at + sizeof size + size);
    std::memcpy(&out[at], &size, sizeof size);
    std::memcpy(&out[at + sizeof size], bytes.begin(), size);
  }
  return out;
}

std::vector<ObjectRecord> decodeRecords(std::span<const std::byte> bytes, const RingCut& barrier) {
  std::vector<ObjectRecord> records;
  while (!bytes.empty()) {
    KJ_CONTEXT("a record of the snapshot", records.size());
    uint32_t size = 0;
    KJ_REQUIRE(bytes.size() >= sizeof size, "the file ends within a record");
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes = bytes.subspan(sizeof size);
    KJ_REQUIRE(bytes.size() >= size, "the file ends within a record", size, bytes.size());
    auto copy = kj::heapArray<kj::byte>(size);
    if (size > 0) std::memcpy(copy.begin(), bytes.data(), size);
    bytes = bytes.subspan(size);
    records.push_back(decodeRecord(copy));
    for (auto& frame : records.back().recipe)
      KJ_REQUIRE(barrier.hasExecuted(frame.place()), "a frame is newer than the snapshot", frame.device, frame.position,
                 barrier[frame.device]);
  }
  return recordsAt(std::move(records), barrier);  // also checks that the records are consistent
}

}  // namespace vgpu::snapshot
