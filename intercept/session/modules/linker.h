// A link in progress (cuLink*): the worker's driver links, and the image is sent back to the program.
//
// The worker's part is not in snapshots. A worker that does not know the link, because the session was resumed meanwhile, gets everything
// again: so the program's inputs are kept until the link is destroyed.
//
// Any thread; `mutex` is held during each operation on the link, over its calls.
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

  // All return CUDA's results, and fill the program's logs.
  CUresult create(Thread& thread);
  CUresult add(Thread& thread, LinkInput input);
  // The image belongs to the link and is valid until the link is destroyed.
  CUresult complete(Thread& thread, std::span<std::byte>& image);
  CUresult destroy(Thread& thread);

 private:
  CUresult createThere(Thread& thread);
  // `isMissing`: set if the worker does not know the link, or has only part of the input.
  CUresult addThere(Thread& thread, const LinkInput& input, bool& isMissing);
  CUresult completeThere(Thread& thread, bool& isMissing);
  CUresult fetch(Thread& thread, bool& isMissing);
  // Sends everything so far to a worker that does not know the link.
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
