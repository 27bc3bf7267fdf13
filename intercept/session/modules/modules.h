// Modules: loading from images, lookup of functions and variables by name, unloading.
//
// Any thread, outside the gate; no lock is held over a call. A module belongs to a context, and that context's device executes it,
// whichever context is current. What the client knows of a module stays in the program's process over a suspend; the worker's part is
// restored by the frames recorded here.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "intercept/session/modules/jit-options.h"
#include "intercept/session/modules/references.h"  // the third lookup by name
#include "intercept/session/thread.h"

namespace vgpu::client {

// Loads `image` (image::imageAt) into `context`. CUDA's result; `jit` receives the JIT's logs, for a refused image too. `library`: the
// library (CodeLibrary) with whose modules on other devices it shares managed variables; 0: none.
CUresult loadModule(Thread& thread, std::span<const std::byte> image, uint64_t context, JitOptions& jit, uint64_t& module,
                    uint64_t library = 0);

// Unloads a live module, after its device has completed all work.
CUresult unloadModule(Thread& thread, uint64_t module);

// The function of that name in a live module, with one handle for each name. CUDA_ERROR_NOT_FOUND if there is none.
CUresult findFunction(Thread& thread, uint64_t module, const std::string& name, uint64_t& function);
// The same for a variable.
CUresult findVariable(Thread& thread, uint64_t module, const std::string& name, KnownVariable& variable);
// The names of all functions of a live module, in the driver's order.
CUresult listFunctions(Thread& thread, uint64_t module, std::vector<std::string>& names);

// Sets an attribute of a live function, or its cache preference.
CUresult setAttribute(Thread& thread, uint64_t function, CUfunction_attribute attribute, int value);
CUresult setCacheConfig(Thread& thread, uint64_t function, CUfunc_cache config);

// Keeps the driver's reply with a function's attributes.
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
