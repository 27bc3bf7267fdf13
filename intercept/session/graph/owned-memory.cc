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

bool isInSameKind(const GraphMemories& memories, const CopyWork& now, const CopyWork& wanted) {
  auto isOfNode = [&](const CopyEnd& end) { return !end.isArray() && memories.isOfNode(end.address()); };
  return isOfNode(now.to) == isOfNode(wanted.to) && isOfNode(now.from) == isOfNode(wanted.from);
}

}  // namespace vgpu::client
