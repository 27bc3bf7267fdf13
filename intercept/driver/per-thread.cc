// The per-thread flavours of cuda.h (…_ptsz and …_ptds): every entry a second time, with the null stream meaning the calling thread's
// default stream. A program compiled with per-thread default streams links these names.
#define __CUDA_API_VERSION_INTERNAL  // every version under its own name
#include <cuda.h>

#include "intercept/session/thread.h"

namespace {

// While an object of this class exists, the null stream means the calling thread's own.
class OwnDefaultStream {
 public:
  OwnDefaultStream() : before(vgpu::client::Thread::ownDefaultStream) { vgpu::client::Thread::ownDefaultStream = true; }
  ~OwnDefaultStream() { vgpu::client::Thread::ownDefaultStream = before; }

 private:
  bool before;
};

template <auto entry>
struct PerThread;
template <typename... Arguments, CUresult(CUDAAPI* entry)(Arguments...)>
struct PerThread<entry> {
  static CUresult CUDAAPI call(Arguments... arguments) {
    OwnDefaultStream scope;
    return entry(arguments...);
  }
};

}  // namespace

// The exported name jumps to a template instance: C++ cannot define a function with the type of another one.
#define PER_THREAD(entry, name)                                                                                \
  extern "C" {                                                                                                 \
  extern __attribute__((visibility("hidden"))) decltype(&entry) const vgpu_##name;                             \
  __attribute__((used)) decltype(&entry) const vgpu_##name = &PerThread<&entry>::call;                         \
  }                                                                                                            \
  asm(".text\n"                                                                                                \
      ".p2align 4\n"                                                                                           \
      ".globl " #name "\n"                                                                                     \
      ".type " #name ", @function\n"                                                                           \
      #name ":\n"                                                                                              \
      "  endbr64\n"                                                                                            \
      "  jmp *vgpu_" #name "(%rip)\n"                                                                          \
      ".size " #name ", . - " #name "\n");
#include "cuda-per-thread.inc"
