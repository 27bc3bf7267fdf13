// The completion word of one stream: the GPU writes into it the sequence numbers of the stream's records and fences, in their
// order. So the GPU has passed a record if the completion word holds its sequence number or a larger one, whatever happens in
// other streams.
//
// All of them count in the ring of the stream's device. Taken at its first use, given back when the stream is destroyed, and
// reused when the GPU has written all pending numbers: its value never becomes smaller, so events recorded in a destroyed stream
// stay valid. Any thread, without locks but for the first use; kept in the program over a suspend.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "intercept/session/completion-words.h"

namespace vgpu::client {

class StreamCompletion {
 public:
  // Nothing if all completion words are taken.
  std::optional<uint32_t> take(CompletionWords& completions, unsigned device);
  // The GPU is going to write this. To be called before the frame is published.
  void expect(uint64_t sequence);
  // Nothing before the first use.
  std::optional<uint32_t> find() const;

  // Gives the completion word back: the stream, of `device`, is about to be destroyed.
  void end(CompletionWords& completions, unsigned device);
  // For another stream.
  void reset();

 private:
  static constexpr uint32_t none = ~uint32_t{0};

  std::atomic<uint32_t> completion{none};
  std::atomic<uint64_t> last{0};
};

}  // namespace vgpu::client
