#include "intercept/session/graph/owned-memory.h"

namespace vgpu::client {

namespace {

std::shared_ptr<const Conditions> ownerOf(const GraphMemories& memories, const CopyEnd& end) {
  return end.isArray() ? nullptr : memories.ownerOf(end.address());
}

}  // namespace

bool mayName(const GraphMemories& memories, const std::shared_ptr<const Conditions>& graph, const NodeWork& work) {
  auto isGraphs = [&](const std::shared_ptr<const Conditions>& owner) { return owner == nullptr || owner == graph; };
  if (auto* fill = std::get_if<FillWork>(&work)) return isGraphs(memories.ownerOf(fill->given.dst));
  auto* copy = std::get_if<CopyWork>(&work);
  return copy == nullptr || (isGraphs(ownerOf(memories, copy->to)) && isGraphs(ownerOf(memories, copy->from)));
}

bool leavesOwnMemory(const GraphMemories& memories, const CopyWork& now, const CopyWork& wanted) {
  auto leaves = [&](const CopyEnd& from, const CopyEnd& to) {
    return ownerOf(memories, from) != nullptr && ownerOf(memories, to) == nullptr;
  };
  return leaves(now.to, wanted.to) || leaves(now.from, wanted.from);
}

}  // namespace vgpu::client
