// What this session gives to other sessions of its user, and takes from them, by names. The daemon knows who has what
// (docs/ipc.md). And the files that its program gives it, by names of the same kind.
//
// Any of the worker's threads, outside of the event loop; each function waits for the daemon. Nothing of it survives a suspend:
// recipes give and take the same again, and sessions that share are suspended and resumed together. While they are resumed,
// find() and open() wait until another one's recipes have given what is looked for.
#pragma once

#include <kj/io.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cuda-kinds.h"

namespace vgpu::stub {

// 16 random bytes that the giving program has chosen, as frames have them.
struct SharedName {
  uint64_t first = 0, second = 0;
  auto operator<=>(const SharedName&) const = default;
};

struct SharedObject {
  api::Kind kind{};
  std::array<std::byte, 16> device{};  // the UUID of the GPU that has it
  uint64_t bytes = 0;                  // of the parts together
  uint64_t offset = 0, size = 0;       // in them, of what was given
  std::vector<std::byte> content;      // what is given in place of descriptors
  std::vector<uint64_t> parts;         // sizes of what is behind each descriptor
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  // False if the name is taken. There is a descriptor for each part.
  virtual bool publish(const SharedName& name, const SharedObject& object, std::vector<kj::AutoCloseFd> parts) = 0;
  virtual void withdraw(const SharedName& name) = 0;
  // Nothing if no other session that runs gives anything by that name.
  virtual std::optional<SharedObject> find(const SharedName& name) = 0;
  // The same, and takes it until close(): of each part its descriptor. Nothing if it is not there any more.
  virtual std::optional<std::vector<kj::AutoCloseFd>> open(const SharedName& name) = 0;
  virtual void close(const SharedName& name) = 0;
  // A file that this session's own program has given. Nothing if it has given none by that name.
  virtual std::optional<kj::AutoCloseFd> file(const SharedName& name) = 0;
};

}  // namespace vgpu::stub
