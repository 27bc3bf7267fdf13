// A GPU's UUID as NVML and nvidia-smi write it: "GPU-" and its 16 bytes in five groups.
#pragma once

#include <cstdio>

namespace vgpu {

struct UuidText {
  explicit UuidText(const char (&bytes)[16]) {
    int length = std::snprintf(text, sizeof text, "GPU");
    for (int i = 0; i < 16; ++i) {
      const bool beginsGroup = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
      length += std::snprintf(text + length, sizeof text - static_cast<size_t>(length), "%s%02x", beginsGroup ? "-" : "",
                              static_cast<unsigned>(static_cast<unsigned char>(bytes[i])));
    }
  }
  char text[sizeof "GPU-01234567-0123-0123-0123-0123456789ab"];
};

}  // namespace vgpu
