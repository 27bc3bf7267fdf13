// cuLink*: links inputs into one image. The image is PTX, which the emulated device can load.
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
  std::string said;                    // text in the error log so far
  CUresult completion = CUDA_SUCCESS;  // result of cuLinkComplete
  TextLinker linker;
  std::string image;  // the caller keeps a pointer into it until the link is destroyed
};

}  // namespace vgpu::emulator::api
