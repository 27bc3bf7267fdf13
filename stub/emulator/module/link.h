// cuLink*: modules linked into one image. The image is PTX: what the emulated device loads.
#pragma once

#include <string>

#include "stub/emulator/module/jit-options.h"
#include "stub/emulator/ptx/text-linker.h"

namespace vgpu::emulator::api {

struct Link {
  Link(Context& owner, const JitLog& log) : context(owner), log(log) {}
  Context& context;
  CUlinkState handle = nullptr;
  JitLog log;
  std::string said;                    // what the error log has so far
  CUresult completion = CUDA_SUCCESS;  // what cuLinkComplete has to answer
  TextLinker linker;
  std::string image;  // the caller keeps a pointer into it until the link is destroyed
};

}  // namespace vgpu::emulator::api
