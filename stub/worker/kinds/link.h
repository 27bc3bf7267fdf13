// Links in progress on one GPU. The driver writes its logs into buffers that it got when the link was created, so a link must not move.
//
// Only the thread of that GPU uses the table; slow calls (slow-calls.h) work on a link. A snapshot keeps none: the client makes them again
// (intercept/session/modules/linker.h).
#pragma once

#include <cuda.h>

#include <array>
#include <bit>
#include <map>
#include <memory>
#include <span>

#include "vgpu/base/sizes.h"

namespace vgpu::stub {

// The options of one call of the JIT or the linker: the program's, and ours, which return the logs and the time.
class JitCall {
 public:
  // From the lists in a frame; options without a value are left out.
  template <typename Options, typename Values>
  JitCall(const Options& options, const Values& values) : JitCall() {
    for (unsigned i = 0; i < options.size() && i < values.size() && used < keys.size(); ++i) {
      keys[used] = static_cast<CUjit_option>(options[i]);
      this->values[used++] = std::bit_cast<void*>(uint64_t{values[i]});
    }
  }
  JitCall(const JitCall&) = delete;
  JitCall& operator=(const JitCall&) = delete;

  unsigned count() const { return used; }
  CUjit_option* options() { return keys.data(); }
  void** optionValues() { return values.data(); }
  // The program's options alone.
  unsigned ownCount() const { return used - ours; }
  CUjit_option* ownOptions() { return keys.data() + ours; }
  void** ownValues() { return values.data() + ours; }

  const char* errors() const { return errorLog->data(); }
  const char* info() const { return infoLog->data(); }
  float milliseconds() const { return std::bit_cast<float>(static_cast<uint32_t>(std::bit_cast<uint64_t>(values[wallTime]))); }

 private:
  static constexpr unsigned wallTime = 4, ours = 5;
  static constexpr size_t logBytes = 64 * KiB;  // for each log; the rest is cut off
  using Log = std::array<char, logBytes>;

  JitCall()
      : keys{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
             CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_WALL_TIME},
        values{errorLog->data(), std::bit_cast<void*>(uint64_t{logBytes}), infoLog->data(),
               std::bit_cast<void*>(uint64_t{logBytes}), nullptr} {}

  std::unique_ptr<Log> errorLog = std::make_unique<Log>(), infoLog = std::make_unique<Log>();
  std::array<CUjit_option, CU_JIT_NUM_OPTIONS + ours> keys;
  std::array<void*, CU_JIT_NUM_OPTIONS + ours> values;
  unsigned used = ours;
};

struct Link {
  template <typename Options, typename Values>
  Link(const Options& options, const Values& values) : jit(options, values) {}

  JitCall jit;
  CUlinkState real = nullptr;
  CUresult result = CUDA_SUCCESS;    // of the last call
  std::span<const std::byte> image;  // the driver's memory, once the link is complete
};

using Links = std::map<uint64_t, std::shared_ptr<Link>>;  // by virtual handle; pending slow calls hold references too

}  // namespace vgpu::stub
