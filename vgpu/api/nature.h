// How a frame is sent and what is kept of it. The table's rows say so; what makes a frame knows it when it is compiled.
#pragma once

#include <cstdint>

namespace vgpu::api {

enum class Route : uint8_t {
  POST,    // the frame is written and the call returns; errors are CUDA's asynchronous ones
  CALL,    // waits for the worker's reply
  SIGNAL,  // waits until the GPU has come to this place of the stream and writes it into the caller's slot
};

enum class Replay : uint8_t {
  QUERY,  // changes nothing that outlives it; never kept
  BUILD,  // part of the recipe of an object
  WORK,   // has an effect on memory; kept by the log, not by the object list
};

struct Nature {
  Route route;
  Replay replay;
  bool noWork;  // leaves nothing for the GPU to do
};

}  // namespace vgpu::api
