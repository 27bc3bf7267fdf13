// cuLink*: PTX given in pieces, made into one image. The image is PTX again: what the emulated device loads.
#pragma once

#include <string>
#include <vector>

#include "jit-options.h"

namespace vgpu::emulator::api {

struct Link {
  Link(Context& owner, const JitLog& log) : context(owner), log(log) {}
  Context& context;
  CUlinkState handle = nullptr;
  JitLog log;
  std::vector<std::string> pieces;
  std::string linked;  // the caller keeps a pointer into it until the link is destroyed
};

// The pieces as one text: the first one's .version, .target and .address_size hold for all.
std::string joinPtx(const std::vector<std::string>& pieces);

}  // namespace vgpu::emulator::api
