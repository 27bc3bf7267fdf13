// Objects that this session shares with other sessions of its user, by name; the daemon knows which session gives which name (docs/ipc.md).
// Also the files that its program gives it, by names of the same form.
//
// Any of the worker's threads, but not from inside the event loop; each function waits for the daemon. Nothing of it survives a suspend:
// recipes publish and open the same objects again, and sessions that share are suspended and resumed together. During their resume, find()
// and open() wait until the recipes of the other session have published the name.
#pragma once

#include <kj/io.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cuda-kinds.h"

namespace vgpu::stub {

// 16 random bytes chosen by the publishing program, in the form that frames use.
struct SharedName {
  uint64_t first = 0, second = 0;
  auto operator<=>(const SharedName&) const = default;
};

struct SharedObject {
  api::Kind kind{};
  std::array<std::byte, 16> device{};  // the UUID of the GPU that owns it
  uint64_t bytes = 0;                  // of all parts together
  uint64_t offset = 0, size = 0;       // the published range within those bytes
  std::vector<std::byte> content;      // data that is published instead of descriptors
  std::vector<uint64_t> parts;         // the size of the memory behind each descriptor
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  // False if the name is in use. `parts` has one descriptor for each part.
  virtual bool publish(const SharedName& name, const SharedObject& object, std::vector<kj::AutoCloseFd> parts) = 0;
  virtual void withdraw(const SharedName& name) = 0;
  // Nothing if no other running session publishes that name.
  virtual std::optional<SharedObject> find(const SharedName& name) = 0;
  // Like find(), and keeps the object in use until close(): returns a descriptor for each part. Nothing if it is no longer published.
  virtual std::optional<std::vector<kj::AutoCloseFd>> open(const SharedName& name) = 0;
  virtual void close(const SharedName& name) = 0;
  // A file that this session's own program has given. Nothing if there is none by that name.
  virtual std::optional<kj::AutoCloseFd> file(const SharedName& name) = 0;
};

}  // namespace vgpu::stub
