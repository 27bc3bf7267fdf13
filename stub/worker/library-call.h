// A call of a library: turns an argument block into the call's words: virtual handles become real ones, streams are set, addresses are
// checked, and host memory is in buffers of this process. One interpreter of the rows of vgpu/api/cublas.table serves all entries.
//
// Used by the thread of a GPU while it executes a frame or restores a session. The block must live until prepare() has copied it; that of a
// setting until finish(). Only makeCall() may run on the thread of slow calls, and only if the call has buffers of its own. Throws
// kj::Exception on a block that no honest client sends.
#pragma once

#include <kj/array.h>
#include <kj/string.h>

#include <memory>
#include <optional>
#include <string>

#include "stub/worker/execution.h"
#include "vgpu/wire/arena.h"

namespace vgpu::stub {

// An object of this GPU, or of another one, as a descriptor may be used with handles of several GPUs. Throws BadHandle if there is none.
KnownLibraryObject& knownLibraryObject(Execution& on, uint64_t handle);

class LibraryCall {
 public:
  LibraryCall(Execution& on, uint64_t signature, kj::StringPtr symbol, uint32_t hostMask, kj::ArrayPtr<const kj::byte> block)
      : LibraryCall(on, signature, symbol, hostMask, block, on.library.buffers) {}
  LibraryCall(Execution& on, uint64_t signature, kj::StringPtr symbol, uint32_t hostMask, kj::ArrayPtr<const kj::byte> block,
              LibraryBuffers& buffers);

  // CUDA's result: an error means that the program may not use one of the arguments. `object`: the virtual handle of the object that the
  // call makes.
  CUresult run(uint64_t object = 0);

  // run() for a setting that is made again. False if a stream or memory that it names has ended since: the object could not be used with it
  // before either.
  bool runAgain() try {
    return run() == CUDA_SUCCESS;
  } catch (const BadHandle&) {
    return false;
  }

  // The three parts of run().
  CUresult prepare();
  void makeCall();  // loads the library at its first call
  void finish(uint64_t object);

  // CUDA's result of a call that was to make an object.
  CUresult madeResult() const {
    if (status == 0) return CUDA_SUCCESS;
    return status == static_cast<uint64_t>(api::libraryStatus.memory) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_NOT_SUPPORTED;
  }

  // Whether it makes a descriptor in host memory, with a library that is loaded.
  bool isQuick() const;

  template <typename Results>
  void reply(Reply& to) const {
    auto out = to.init<Results>();
    out.setStatus(status);
    out.setResults(results());
  }

  // The stream that its frame gives work to, if any: see follow().
  std::optional<uint64_t> stream;

  const api::LibraryEntry* entry = nullptr;
  uint64_t status = 0;  // what the library function returned: a status, or another value
  bool namesEnded = false;  // an argument is an address where the session has no memory

 private:
  void read();
  CUresult translate(size_t argument);
  CUresult placeHost(size_t argument);
  uint64_t realOf(uint64_t handle, uint8_t type);
  // Makes a handle's library use `stream` (followed-stream.cc).
  void follow(const KnownLibraryObject& known, uint64_t handle);
  // makeCall(), without this thread waiting for other work of the GPU (followed-stream.cc). CUDA's result.
  CUresult makeCallUnheld();
  // Checks an address that the library passes on to the GPU. For no elements it may be any address (the end of a matrix), and a call that
  // is made again for a graph may name memory that has ended. So an address in a range where only the session's memory can lie is passed
  // on, as natively; any other is refused.
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
