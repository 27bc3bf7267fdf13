// The settings of a captured call's objects at the time of the call, as one byte list of its frame, in the order in which they were made:
//   [entry (8) · mask of host memory (8) · bytes of the argument block (8) · the block, to a multiple of 8]…
#pragma once

#include <kj/array.h>
#include <kj/debug.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace vgpu::api {

struct CapturedSetting {
  uint64_t entry = 0;  // the entry's signature
  uint32_t hostMask = 0;
  kj::ArrayPtr<const kj::byte> block;

  // The object that was set: the first word of the block.
  uint64_t object() const {
    uint64_t handle = 0;
    if (block.size() >= sizeof handle) std::memcpy(&handle, block.begin(), sizeof handle);
    return handle;
  }
};

inline void addCapturedSetting(std::vector<uint64_t>& to, const CapturedSetting& setting) {
  to.insert(to.end(), {setting.entry, setting.hostMask, setting.block.size()});
  size_t at = to.size();
  to.resize(at + (setting.block.size() + 7) / 8);
  std::memcpy(to.data() + at, setting.block.begin(), setting.block.size());
}

// The returned blocks point into `bytes`. Throws kj::Exception on a list that an honest client never sends.
inline std::vector<CapturedSetting> readCapturedSettings(kj::ArrayPtr<const kj::byte> bytes) {
  std::vector<CapturedSetting> all;
  uint64_t head[3];
  for (size_t at = 0; at < bytes.size();) {
    KJ_REQUIRE(bytes.size() - at >= sizeof head, "a list of settings that ends within a setting");
    std::memcpy(head, bytes.begin() + at, sizeof head);
    at += sizeof head;
    KJ_REQUIRE(head[2] <= bytes.size() - at && head[1] <= UINT32_MAX, "a setting that extends past the end of its list", head[2]);
    all.push_back({head[0], static_cast<uint32_t>(head[1]), bytes.slice(at, at + head[2])});
    at += (head[2] + 7) / 8 * 8;
  }
  return all;
}

}  // namespace vgpu::api
