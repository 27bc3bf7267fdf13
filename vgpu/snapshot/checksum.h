// XXH3 checksums of 128 bits, of files and of parts of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace vgpu::snapshot {

// As 32 hexadecimal digits.
std::string checksumOf(std::span<const std::byte> bytes);

struct FileSum {
  uint64_t bytes = 0;
  std::string checksum;
  bool operator==(const FileSum&) const = default;
};

// The running checksum of a file.
class Checksum {
 public:
  Checksum();
  Checksum(Checksum&&) noexcept;
  ~Checksum();
  void add(std::span<const std::byte> bytes);
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state;
};

}  // namespace vgpu::snapshot
