// How a frame is sent and what is kept of it. The table's rows define this; the code that makes a frame knows it at compile time.
#pragma once

#include <cstdint>

namespace vgpu::api {

enum class Route : uint8_t {
  POST,    // the frame is written and the call returns; errors are CUDA's asynchronous ones
  CALL,    // waits for the worker's reply
  SIGNAL,  // waits until the GPU has reached this point of the stream and written it into the caller's slot
};

enum class Replay : uint8_t {
  QUERY,  // has no lasting effect; never kept
  BUILD,  // part of an object's recipe
  WORK,   // has an effect on memory; kept by the log, not by the object list
};

struct Nature {
  Route route;
  Replay replay;
  bool noWork;  // leaves no work for the GPU
};

}  // namespace vgpu::api
