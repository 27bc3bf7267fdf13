// Converts the contents of the daemon's messages for a worker, such as descriptors, which must be duplicated because they end with the
// message.
#pragma once

#include <kj/async.h>

#include <limits>
#include <vector>

#include "tools/common/descriptor.h"
#include "vgpu/base/memory-file.h"

namespace vgpu::stub {

// Duplicates of the descriptors of the memory that a program shares.
struct ProgramMemory {
  kj::AutoCloseFd segment, hostArena;
};

template <typename Params>
kj::Promise<ProgramMemory> receiveMemory(Params params) {
  auto descriptors = kj::heapArrayBuilder<kj::Promise<kj::AutoCloseFd>>(2);
  descriptors.add(receiveDescriptor(params.getSegment()));
  descriptors.add(receiveDescriptor(params.getHostArena()));
  return kj::joinPromises(descriptors.finish()).then([](kj::Array<kj::AutoCloseFd>&& all) {
    return ProgramMemory{kj::mv(all[0]), kj::mv(all[1])};
  });
}

// Only checks the seals; stub::Worker checks the sizes.
inline MemoryFile adopt(kj::AutoCloseFd& fd) {
  return MemoryFile::adopt(fd.release(), 1, std::numeric_limits<int64_t>::max());
}

inline kj::Promise<kj::Array<kj::AutoCloseFd>> receiveDescriptors(capnp::List<control::Descriptor>::Reader list) {
  auto all = kj::heapArrayBuilder<kj::Promise<kj::AutoCloseFd>>(list.size());
  for (auto descriptor : list) all.add(receiveDescriptor(descriptor));
  return kj::joinPromises(all.finish());
}

inline std::vector<kj::AutoCloseFd> toVector(kj::Array<kj::AutoCloseFd> array) {
  std::vector<kj::AutoCloseFd> vector;
  for (auto& fd : array) vector.push_back(kj::mv(fd));
  return vector;
}

}  // namespace vgpu::stub
