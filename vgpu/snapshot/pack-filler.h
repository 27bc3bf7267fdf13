// Writes into space that was reserved in a snapshot's own pack (PackWriter::leave).
#pragma once

#include <kj/io.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace vgpu::snapshot {

class PackFiller {
 public:
  // Throws kj::Exception if the file cannot be opened.
  PackFiller(const std::string& directory, const std::string& name);
  // Throws kj::Exception that names the file and the system's reason, as does finish(), which waits until everything is on disk.
  void write(uint64_t offset, std::span<const std::byte> bytes);
  void finish();

 private:
  [[noreturn]] void refuse(uint64_t bytes = 0) const;

  const std::string path;
  kj::AutoCloseFd file;
};

}  // namespace vgpu::snapshot
