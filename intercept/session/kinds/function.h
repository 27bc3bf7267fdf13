#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "intercept/session/kinds/head.h"
#include "intercept/session/known-replies.h"
#include "intercept/session/launch-attributes.h"

namespace vgpu::client {

// What is set of a function before cuLaunch (intercept/driver/next-launch.h).
struct NextLaunch {
  static constexpr unsigned mostParameterBytes = 4096;

  std::array<unsigned, 3> block{};
  unsigned sharedBytes = 0;
  std::vector<std::byte> parameters;  // as far as they are set
  unsigned parameterBytes = 0;
};

struct FunctionLayout {
  explicit FunctionLayout(const std::atomic<uint64_t>& deviceChanges) : replies(deviceChanges) {}

  struct Parameter {
    uint32_t offset, bytes;
  };
  uint64_t module = 0, context = 0;  // the context is that of the module
  std::string name;
  std::vector<Parameter> parameters;
  uint32_t parameterBytes = 0;
  uint32_t maxThreadsPerBlock = 0, staticSharedBytes = 0;
  std::atomic<uint32_t> maxPlainThreads{0};  // as maxThreadsPerBlock; 0 if launches have clusters although they ask for none
  std::array<std::atomic<uint32_t>, 3> cluster{};  // of every launch, in blocks; zeros: what it asks for
  std::atomic<uint32_t> maxDynamicSharedBytes{0};
  // Launches are checked against what is set of a function.
  void set(CUfunction_attribute attribute, int value) {
    const int axis = attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;  // then height, then depth
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) maxDynamicSharedBytes = static_cast<uint32_t>(value);
    if (axis < 0 || axis > 2) return;
    cluster[axis] = static_cast<uint32_t>(value);
    maxPlainThreads = hasCluster() ? 0 : maxThreadsPerBlock;
  }
  bool hasCluster() const {
    return std::ranges::any_of(cluster, [](auto& side) { return side.load(std::memory_order_relaxed) != 0; });
  }

  KnownReplies replies;  // to queries about the function
  std::unique_ptr<NextLaunch> next;  // null: nothing is set
};

struct FunctionState : ObjectHead {
  std::unique_ptr<FunctionLayout> layout;  // of a live one never null

  KnownReplies& replies() const { return layout->replies; }
  void reset() { layout.reset(); }
};

}  // namespace vgpu::client
