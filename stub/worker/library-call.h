// A call of a library: an argument block becomes the call's words, with virtual handles real, streams set, addresses checked, and host
// memory in buffers of this process. One interpreter of the rows of vgpu/api/cublas.table for all entries.
//
// Used by the thread of a GPU while it executes a frame, or while a session is restored; the block must live until prepare() has
// copied it, and that of a setting until finish(). Only makeCall() may run elsewhere: on the thread of slow calls, if the call has
// buffers of its own. Throws kj::Exception on a block that no honest client sends.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include <memory>
#include <optional>
#include <string>

#include "stub/worker/execution.h"
#include "vgpu/wire/arena.h"

namespace vgpu::stub {

// An object of this GPU, or of another one, as a description that is used with several handles. Throws BadHandle if there is
// none.
KnownLibraryObject& knownLibraryObject(Execution& on, uint64_t handle);

class LibraryCall {
 public:
  LibraryCall(Execution& on, uint64_t signature, kj::StringPtr symbol, uint32_t hostMask, kj::ArrayPtr<const kj::byte> block)
      : LibraryCall(on, signature, symbol, hostMask, block, on.library.buffers) {}
  LibraryCall(Execution& on, uint64_t signature, kj::StringPtr symbol, uint32_t hostMask, kj::ArrayPtr<const kj::byte> block,
              LibraryBuffers& buffers);

  // CUDA's answer: an error is of an argument that the program may not use. `object`: the virtual handle of what is made.
  CUresult run(uint64_t object = 0);

  // The same for one that has set something before. False if what it names, a stream or memory, has ended since: its object is of no use
  // with it either.
  bool runAgain() try {
    return run() == CUDA_SUCCESS;
  } catch (const BadHandle&) {
    return false;
  }

  // The three parts of run().
  CUresult prepare();
  void makeCall();  // loads the library, if nothing of it has been called before
  void finish(uint64_t object);

  // CUDA's answer of a call that has made an object, or was to.
  CUresult madeResult() const {
    if (status == 0) return CUDA_SUCCESS;
    return status == static_cast<uint64_t>(api::libraryStatus.memory) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_NOT_SUPPORTED;
  }

  // Whether it makes a description in host memory, by a library that is loaded.
  bool isQuick() const;

  template <typename Results>
  void reply(Reply& to) const {
    auto out = to.init<Results>();
    out.setStatus(status);
    out.setResults(results());
  }

  // The stream that its frame gives work to, if it does: see follow().
  std::optional<uint64_t> stream;

  const api::LibraryEntry* entry = nullptr;
  uint64_t status = 0;  // the library's, or what else it returns
  bool namesEnded = false;  // an address where nothing of the session's is

 private:
  void read();
  CUresult translate(size_t argument);
  CUresult placeHost(size_t argument);
  uint64_t realOf(uint64_t handle, uint8_t type);
  // Tells the library that a handle's work goes to `stream` (followed-stream.cc).
  void follow(const KnownLibraryObject& known, uint64_t handle);
  // makeCall(), of which this thread waits for nothing else that the GPU has to do (followed-stream.cc). CUDA's answer.
  CUresult makeCallUnheld();
  // The library hands it on to the GPU. Of no elements it may be any (a matrix's end), and a call that is made again for a graph may name
  // memory that has ended: an address at which nothing but the session's can lie is passed on, as natively, and what does not is refused.
  CUresult reach(uint64_t address) {
    if (address == 0 || on.ownsMemory(address, 1)) return CUDA_SUCCESS;
    namesEnded = true;
    return inDeviceArenas(address) || inMappedArena(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  void replaceHeld();
  void keepObject(uint64_t object);
  void keepSetting();
  kj::ArrayPtr<const kj::byte> results() const;
  bool isHost(size_t argument) const { return (hostMask >> argument & 1) != 0; }

  Execution& on;
  LibraryObjects& mine;
  LibraryBuffers& buffers;
  void* function = nullptr;
  bool isMade = false;  // the library has been called, and has not refused
  const uint32_t hostMask;
  const kj::ArrayPtr<const kj::byte> given;
  std::string problem;
  uint64_t words[api::maxLibraryArguments] = {};
  uint64_t made = 0;
  std::unique_ptr<std::byte[]> place;
  size_t resultBytes = 0;
};

}  // namespace vgpu::stub
