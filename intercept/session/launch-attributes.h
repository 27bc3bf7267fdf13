// Attributes of launches and of kernels' nodes (CUlaunchAttribute) that are values for the driver that launches. What names an object
// or belongs to the launch's shape is not among them. Plain values, for any thread.
#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace vgpu::client {

class HandleTable;

using ClusterSize = std::array<uint32_t, 3>;  // in blocks

struct AttributeKind {
  CUlaunchAttributeID id;
  size_t bytes;  // that of the value have a meaning
  bool ofNodes;  // a kernel's node can have it (cuda.h, CUlaunchAttributeID)
};
// Null if it is not among them.
const AttributeKind* findAttributeKind(CUlaunchAttributeID id);

// CUDA_ERROR_INVALID_CLUSTER_SIZE for clusters that are none.
CUresult checkValue(CUlaunchAttributeID id, const CUlaunchAttributeValue& value);
// With zeros behind what has a meaning, so that attributes can be compared.
CUlaunchAttribute attributeOf(const AttributeKind& kind, const CUlaunchAttributeValue& value);

inline std::span<const std::byte> bytesOf(std::span<const CUlaunchAttribute> attributes) { return std::as_bytes(attributes); }
const CUlaunchAttribute* findAttribute(std::span<const CUlaunchAttribute> attributes, CUlaunchAttributeID id);
// What clusters they ask for.
std::optional<ClusterSize> clusterIn(std::span<const CUlaunchAttribute> attributes);

// What a launch asks for besides its shape. A launch makes no allocation for it.
class LaunchAttributes {
 public:
  static constexpr size_t kindCount = 10;
  struct Record {
    CUevent event;
    unsigned flags;        // as of cuEventRecordWithFlags
    CUgraphEdgeData edge;  // of what waits for it in a capture
  };

  // Reads a program's list. `cooperative` is part of the shape. CUDA's result.
  CUresult read(const CUlaunchConfig& config, bool& cooperative);
  // In the place of an earlier one of this id.
  void set(const CUlaunchAttribute& attribute);

  std::span<const CUlaunchAttribute> values() const { return {list.data(), count}; }
  // Events to record behind the launch. CUDA lets such an event happen when all blocks have begun or say so, and at the latest when
  // the kernel has ended. Here it happens then, because a record is reported by its stream's completion word.
  std::span<const Record> records() const { return {recorded.data(), recordCount}; }
  // CUDA's result: such an event must not measure time, nor be shared with another process.
  CUresult checkRecords(const HandleTable& handles) const;
  // Whether one of them is an event for who is not captured.
  bool recordsOutside() const;
  // Whether the kernel may begin before the work before it in its stream has ended.
  bool mayOverlap() const;
  // Where the program asks for a node that kernels may change, and gets what they know it by; null if it does not ask.
  CUlaunchAttributeValue* deviceNode() const { return askedNode; }
  bool isEmpty() const { return count == 0 && recordCount == 0 && askedNode == nullptr; }

 private:
  std::array<CUlaunchAttribute, kindCount> list;  // one of each kind at most
  std::array<Record, 2> recorded;
  size_t count = 0, recordCount = 0;
  CUlaunchAttributeValue* askedNode = nullptr;
};

}  // namespace vgpu::client
