// Attributes of launches and kernel nodes (CUlaunchAttribute) that are plain values for the driver. Attributes that name an object or
// belong to the launch's shape are not among them. Plain values, for any thread.
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
  size_t bytes;  // how many bytes of the value are meaningful
  bool ofNodes;  // whether kernel nodes can have it (cuda.h, CUlaunchAttributeID)
};
// Null if the attribute is not one of these.
const AttributeKind* findAttributeKind(CUlaunchAttributeID id);

// CUDA_ERROR_INVALID_CLUSTER_SIZE for cluster dimensions of which only some are 0.
CUresult checkValue(CUlaunchAttributeID id, const CUlaunchAttributeValue& value);
// Zeros the bytes that are not meaningful, so that attributes can be compared.
CUlaunchAttribute attributeOf(const AttributeKind& kind, const CUlaunchAttributeValue& value);

inline std::span<const std::byte> bytesOf(std::span<const CUlaunchAttribute> attributes) { return std::as_bytes(attributes); }
const CUlaunchAttribute* findAttribute(std::span<const CUlaunchAttribute> attributes, CUlaunchAttributeID id);
// The cluster size that the attributes request; nothing if they request none.
std::optional<ClusterSize> clusterIn(std::span<const CUlaunchAttribute> attributes);

// What a launch requests besides its shape. Allocates nothing.
class LaunchAttributes {
 public:
  static constexpr size_t kindCount = 10;
  struct Record {
    CUevent event;
    unsigned flags;        // as in cuEventRecordWithFlags
    CUgraphEdgeData edge;  // of the edge to nodes that wait for it in a capture
  };

  // Reads a program's list. `cooperative` is part of the shape. CUDA's result.
  CUresult read(const CUlaunchConfig& config, bool& cooperative);
  // Replaces an earlier attribute with the same id.
  void set(const CUlaunchAttribute& attribute);

  std::span<const CUlaunchAttribute> values() const { return {list.data(), count}; }
  // Events to record after the launch. In CUDA such an event may complete as soon as all blocks have started or trigger it, at the latest
  // when the kernel ends. Here it completes then, because a record is reported by its stream's completion word.
  std::span<const Record> records() const { return {recorded.data(), recordCount}; }
  // CUDA's result: such an event must have timing disabled and must not be shared with another process.
  CUresult checkRecords(const HandleTable& handles) const;
  // Whether one of the events is recorded as external to a capture.
  bool recordsOutside() const;
  // Whether the kernel may start before earlier work in its stream has ended.
  bool mayOverlap() const;
  // The program's output for the handle of a node that kernels may update; null if the program does not request one.
  CUlaunchAttributeValue* deviceNode() const { return askedNode; }
  bool isEmpty() const { return count == 0 && recordCount == 0 && askedNode == nullptr; }

 private:
  std::array<CUlaunchAttribute, kindCount> list;  // at most one of each kind
  std::array<Record, 2> recorded;
  size_t count = 0, recordCount = 0;
  CUlaunchAttributeValue* askedNode = nullptr;
};

}  // namespace vgpu::client
