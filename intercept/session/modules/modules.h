// Modules: loaded from images, asked for functions and variables by name, unloaded.
//
// Any thread, outside the gate; no lock is held in a call. A module belongs to a context and is executed by that context's device,
// whichever is current. What the client knows of a module stays in the program's process over a suspend; the worker's half comes
// back by the frames that are recorded here.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "intercept/session/modules/jit-options.h"
#include "intercept/session/modules/references.h"  // found by name too
#include "intercept/session/thread.h"

namespace vgpu::client {

// Loads `image` (image::imageAt) into `context`. CUDA's result; `jit` is told what the JIT says, of a refused image too.
// `library`: of whose modules on other devices it shares the managed variables (CodeLibrary); 0: of none.
CUresult loadModule(Thread& thread, std::span<const std::byte> image, uint64_t context, JitOptions& jit, uint64_t& module,
                    uint64_t library = 0);

// Unloads a live module, once its device has done all its work.
CUresult unloadModule(Thread& thread, uint64_t module);

// The function of that name in a live module: one handle a name. CUDA_ERROR_NOT_FOUND if there is none.
CUresult findFunction(Thread& thread, uint64_t module, const std::string& name, uint64_t& function);
// The same of a variable.
CUresult findVariable(Thread& thread, uint64_t module, const std::string& name, KnownVariable& variable);
// The names of all functions of a live module, in the driver's order.
CUresult listFunctions(Thread& thread, uint64_t module, std::vector<std::string>& names);

// Sets an attribute of a live function, or its cache preference.
CUresult setAttribute(Thread& thread, uint64_t function, CUfunction_attribute attribute, int value);
CUresult setCacheConfig(Thread& thread, uint64_t function, CUfunc_cache config);

// Keeps the driver's reply about a function's attributes.
KnownReplies::Question questionOf(CUfunction_attribute attribute);
constexpr KnownReplies::Question allAttributes{api::Method::funcAttributes};
template <typename Reported>
void keepAttributes(KnownReplies& replies, uint64_t generation, Reported reported) {
  for (unsigned i = 0; i < reported.getAttributes().size() && i < 64; ++i)
    if (reported.getKnown() >> i & 1)
      replies.keep(generation, questionOf(static_cast<CUfunction_attribute>(i)),
                   static_cast<uint32_t>(reported.getAttributes()[i]));
  replies.keep(generation, allAttributes, 1);
}

}  // namespace vgpu::client
