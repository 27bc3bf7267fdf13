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

// The settings of a function for its next cuLaunch (intercept/driver/next-launch.h).
struct NextLaunch {
  static constexpr unsigned mostParameterBytes = 4096;

  std::array<unsigned, 3> block{};
  unsigned sharedBytes = 0;
  std::vector<std::byte> parameters;  // those set so far
  unsigned parameterBytes = 0;
};

struct FunctionLayout {
  explicit FunctionLayout(const std::atomic<uint64_t>& deviceChanges) : replies(deviceChanges) {}

  struct Parameter {
    uint32_t offset, bytes;
  };
  uint64_t module = 0, context = 0;  // `context`: the module's
  std::string name;
  std::vector<Parameter> parameters;
  uint32_t parameterBytes = 0;
  uint32_t maxThreadsPerBlock = 0, staticSharedBytes = 0;
  std::atomic<uint32_t> maxPlainThreads{0};  // maxThreadsPerBlock, or 0 if every launch has clusters
  std::array<std::atomic<uint32_t>, 3> cluster{};  // the fixed cluster size in blocks; zeros: each launch may request one
  std::atomic<uint32_t> maxDynamicSharedBytes{0};
  // Keeps attributes that the program sets and against which launches are checked.
  void set(CUfunction_attribute attribute, int value) {
    const int axis = attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;  // then height and depth
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
  std::unique_ptr<FunctionLayout> layout;  // never null while the function is live

  KnownReplies& replies() const { return layout->replies; }
  void reset() { layout.reset(); }
};

}  // namespace vgpu::client
