// Where a snapshot is to be made. A name that was chosen for it is reserved by its directory, which is empty as long as nothing
// has been written there: two commands at once choose two names.
#pragma once

#include <string>
#include <utility>

namespace vgpu {
class ChunkStore;
}

namespace vgpu::ctl {

class NewSnapshot {
 public:
  // A directory that a person has named.
  explicit NewSnapshot(std::string directory) : directory(std::move(directory)) {}
  // In the store. Throws kj::Exception if there is one of that name.
  static NewSnapshot called(const ChunkStore& store, const std::string& name);
  // As `wish` says, with a number if that is taken, and '-' for what a name cannot have.
  static NewSnapshot like(const ChunkStore& store, const std::string& wish);

  NewSnapshot(NewSnapshot&& other) noexcept
      : directory(std::move(other.directory)), isReserved(std::exchange(other.isReserved, false)) {}
  // Gives a name back under which nothing was made.
  ~NewSnapshot();

  const std::string& path() const { return directory; }

 private:
  std::string directory;
  bool isReserved = false;
};

}  // namespace vgpu::ctl
