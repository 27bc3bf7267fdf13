// The directory in which a snapshot is to be made. A name that was chosen for it is reserved by making the directory, which stays empty
// until the snapshot is written: two concurrent commands choose two names. A lease protects it from a collection, which removes empty
// directories of killed commands.
#pragma once

#include <memory>
#include <string>
#include <utility>

namespace vgpu {
class ChunkStore;
class NameLease;
}  // namespace vgpu

namespace vgpu::ctl {

class NewSnapshot {
 public:
  // A directory that the user has named.
  explicit NewSnapshot(std::string directory);
  // In the store. Throws kj::Exception if there is a snapshot with that name.
  static NewSnapshot called(const ChunkStore& store, const std::string& name);
  // Named like `wish`, with a number appended if that is taken, and '-' for characters that a name cannot have.
  static NewSnapshot like(const ChunkStore& store, const std::string& wish);

  NewSnapshot(NewSnapshot&& other) noexcept;
  // Frees a reserved name under which nothing was made.
  ~NewSnapshot();

  const std::string& path() const { return directory; }

 private:
  std::string directory;
  std::unique_ptr<NameLease> reserved;  // null: no name to free
};

}  // namespace vgpu::ctl
