// Where a snapshot is to be made. A name that was chosen for it is reserved by its directory, which is empty as long as nothing
// has been written there: two commands at once choose two names. A lease keeps it from a collection, which frees empty
// directories of commands that were killed.
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
  // A directory that a person has named.
  explicit NewSnapshot(std::string directory);
  // In the store. Throws kj::Exception if there is one of that name.
  static NewSnapshot called(const ChunkStore& store, const std::string& name);
  // As `wish` says, with a number if that is taken, and '-' for what a name cannot have.
  static NewSnapshot like(const ChunkStore& store, const std::string& wish);

  NewSnapshot(NewSnapshot&& other) noexcept;
  // Gives a name back under which nothing was made.
  ~NewSnapshot();

  const std::string& path() const { return directory; }

 private:
  std::string directory;
  std::unique_ptr<NameLease> reserved;  // null: nobody has to give it back
};

}  // namespace vgpu::ctl
