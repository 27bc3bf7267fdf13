// A link under way (cuLink*): the driver of the worker links, and the image comes back to the program.
//
// The worker's half is no part of a snapshot. A worker that does not know the link, because the session was resumed in between, is
// given everything again: so the program's inputs are kept until the link is destroyed.
//
// Any thread; `mutex` is held while the link is worked on, and calls are made under it.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "intercept/session/modules/jit-options.h"

namespace vgpu::client {

class Thread;

struct LinkInput {
  CUjitInputType type;
  std::string name;
  std::vector<std::byte> bytes;
  JitOptions options;
};

class Linker {
 public:
  Linker(uint64_t handle, JitOptions options) : handle(handle), options(std::move(options)) {}

  // CUDA's results; the program's logs are filled by each.
  CUresult create(Thread& thread);
  CUresult add(Thread& thread, LinkInput input);
  // The image is the link's, and valid until that is destroyed.
  CUresult complete(Thread& thread, std::span<std::byte>& image);
  CUresult destroy(Thread& thread);

 private:
  CUresult createThere(Thread& thread);
  // `isMissing`: the worker does not know the link, or has only a part of the input.
  CUresult addThere(Thread& thread, const LinkInput& input, bool& isMissing);
  CUresult completeThere(Thread& thread, bool& isMissing);
  CUresult fetch(Thread& thread, bool& isMissing);
  // Everything up to now, to a worker that knows nothing of it.
  CUresult repeat(Thread& thread);
  template <typename Results>
  void tell(const Results& reported);

  const uint64_t handle;
  JitOptions options;
  std::mutex mutex;
  std::vector<LinkInput> inputs;
  std::vector<std::byte> image;
};

}  // namespace vgpu::client
