// Managed memory: allocation, advice, prefetching, attachment (session/managed/managed-memory.h).
#include <cstring>

#include "intercept/driver/shared.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

// Checks that `location` is a processor that may access managed memory concurrently with others. `absent`: the error for an unknown device.
CUresult checkLocation(Session& session, const CUmemLocation& location, CUresult absent = CUDA_ERROR_INVALID_DEVICE) {
  if (isHost(location))  // the session has one NUMA node
    return location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && location.id != 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  if (!session.hasDevice(location.id)) return absent;
  return session.devices[static_cast<size_t>(location.id)].sharesManaged() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

bool isOfPool(const PointerInfo& piece) { return piece.context == 0; }

// Runs `body` if [address, address + bytes), in whole pages, lies in one managed piece. `ofPool`: the error for memory of a pool.
template <typename Body>
CUresult onManaged(uint64_t address, size_t bytes, Body&& body, CUresult ofPool = CUDA_SUCCESS) {
  return enter([&](Thread& thread) -> CUresult {
    auto piece = findPointer(thread, address);
    if (!piece || !piece->managed || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > roundUp(piece->start + piece->bytes, hostPageBytes) - address) return CUDA_ERROR_INVALID_VALUE;
    return isOfPool(*piece) && ofPool != CUDA_SUCCESS ? ofPool : body(thread);
  });
}

bool isAboutAccess(CUmem_advise what) { return what == CU_MEM_ADVISE_SET_ACCESSED_BY || what == CU_MEM_ADVISE_UNSET_ACCESSED_BY; }

CUresult advise(Advice& advice, CUmem_advise what, const CUmemLocation& location) {
  const bool isSet = what == CU_MEM_ADVISE_SET_ACCESSED_BY;
  switch (what) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY: advice.isReadMostly = true; return CUDA_SUCCESS;
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY: advice.isReadMostly = false; return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: advice.preferred = location; return CUDA_SUCCESS;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: advice.preferred = {}; return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
      if (isHost(location)) return advice.byHost = isSet, CUDA_SUCCESS;
      advice.devices = isSet ? advice.devices | 1u << location.id : advice.devices & ~(1u << location.id);
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// Locations matter only for this advice; "accessed by" takes a device or the whole host.
CUresult checkAdvised(Session& session, CUmem_advise what, const CUmemLocation& location) {
  if (isAboutAccess(what) && isHost(location) && location.type != CU_MEM_LOCATION_TYPE_HOST) return CUDA_ERROR_INVALID_VALUE;
  if (!isAboutAccess(what) && what != CU_MEM_ADVISE_SET_PREFERRED_LOCATION) return CUDA_SUCCESS;
  return checkLocation(session, location, CUDA_ERROR_INVALID_VALUE);
}

CUdevice numberOf(const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) return location.id;
  return location.type == CU_MEM_LOCATION_TYPE_INVALID ? CU_DEVICE_INVALID : CU_DEVICE_CPU;
}

int idOf(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_INVALID ? CU_DEVICE_INVALID : location.id;
}

// Whether `numbers` are valid as the first operations of each location of a batch: the first is 0, and all are within the batch. They need
// not increase.
bool areFirstOperations(const size_t* numbers, size_t count, size_t batch) {
  if (numbers == nullptr || count == 0 || count > batch || numbers[0] != 0) return false;
  return std::all_of(numbers, numbers + count, [&](size_t number) { return number < batch; });
}

// The advice that all pieces of a range have in common.
struct Common {
  bool isReadMostly = true, isFirst = true, byHost = true;
  uint32_t devices = ~0u;
  CUmemLocation preferred{}, prefetched{};

  void add(const Advice& advice) {
    auto meet = [&](CUmemLocation& all, const CUmemLocation& one) {
      if (isFirst) all = one;
      else if (all.type != one.type || all.id != one.id) all = {};
    };
    isReadMostly &= advice.isReadMostly;
    byHost &= advice.byHost;
    devices &= advice.devices;
    meet(preferred, advice.preferred);
    meet(prefetched, advice.prefetched);
    isFirst = false;
  }

  CUresult answer(CUmem_range_attribute attribute, void* data, size_t bytes) const {
    auto put = [&](int value) {
      if (bytes != sizeof value) return CUDA_ERROR_INVALID_VALUE;
      std::memcpy(data, &value, sizeof value);
      return CUDA_SUCCESS;
    };
    switch (attribute) {
      case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: return put(isReadMostly);
      case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: return put(numberOf(preferred));
      case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: return put(numberOf(prefetched));
      case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: return put(preferred.type);
      case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: return put(idOf(preferred));
      case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE: return put(prefetched.type);
      case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: return put(idOf(prefetched));
      case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: return listAccessors(static_cast<int*>(data), bytes);
      default: return CUDA_ERROR_INVALID_VALUE;
    }
  }

  CUresult listAccessors(int* into, size_t bytes) const {
    if (bytes == 0 || bytes % sizeof(int) != 0) return CUDA_ERROR_INVALID_VALUE;
    int *next = into, *end = into + bytes / sizeof(int);
    for (int device = 0; device < 32 && next != end; ++device)
      if ((devices >> device & 1) != 0) *next++ = device;
    if (byHost && next != end) *next++ = CU_DEVICE_CPU;
    std::fill(next, end, CU_DEVICE_INVALID);
    return CUDA_SUCCESS;
  }
};

}  // namespace

namespace vgpu::client {

CUresult allocateManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  return enter([&](Thread& thread) -> CUresult {
    if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
    uint64_t made = 0;
    CUresult result = thread.session.memory.allocateManaged(thread, thread.device(), bytes, flags, thread.owner(), made);
    if (result == CUDA_SUCCESS) *address = made;
    return result;
  });
}

CUresult adviseManaged(CUdeviceptr address, size_t bytes, CUmem_advise what, const CUmemLocation& location) {
  return onManaged(address, bytes, [&](Thread& thread) -> CUresult {
    if (CUresult bad = checkAdvised(thread.session, what, location)) return bad;
    CUresult result = CUDA_SUCCESS;
    thread.session.managed.advice.change(address, bytes, [&](Advice& advice) { result = advise(advice, what, location); });
    if (what == CU_MEM_ADVISE_SET_PREFERRED_LOCATION) thread.session.managed.places.want(thread, {address, bytes}, location);
    return result;
  }, CUDA_ERROR_NOT_SUPPORTED);
}

// Prefetching to the device moves pages immediately, unless long-running work is outstanding. Prefetching to the host moves pages at the
// program's next access, in larger batches: stream order is only observable to a program that waits for the stream anyway.
CUresult prefetchRange(CUdeviceptr address, size_t bytes, const CUmemLocation& location, unsigned flags, CUstream stream) {
  return onManaged(address, bytes, [&](Thread& thread) -> CUresult {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    uint64_t handle = toWire(stream);
    if (CUresult bad = thread.resolve(api::Kind::STREAM, true, handle)) return bad;
    if (CUresult bad = checkLocation(thread.session, location)) return bad;
    if (!thread.session.devices[thread.deviceOf(handle)].sharesManaged()) return CUDA_ERROR_INVALID_DEVICE;
    auto& managed = thread.session.managed;
    managed.advice.change(address, bytes, [&](Advice& advice) { advice.prefetched = location; });
    if (isHost(location)) managed.expect(address);
    else managed.giveToDevice(thread);
    managed.places.want(thread, {address, bytes}, location);
    return CUDA_SUCCESS;
  });
}

// Executes a batch in order: CUDA leaves the order open. Checks all operations before it executes any. As in the driver, the next
// location's index is compared at each operation but the first: a location whose index has been passed never applies, nor does any after
// it.
CUresult prefetchManaged(const ManagedBatch& batch, const CUmemLocation* locations, const size_t* indices, size_t locationCount,
                         unsigned long long flags, CUstream stream) {
  if (CUresult bad = discardManaged(batch, flags, stream)) return bad;
  if (locations == nullptr || !areFirstOperations(indices, locationCount, batch.count)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0, at = 0; i < batch.count; ++i) {
    if (i > 0 && at + 1 < locationCount && indices[at + 1] == i) ++at;
    CUresult error = prefetchRange(batch.addresses[i], batch.sizes[i], locations[at], 0, stream);
    if (error != CUDA_SUCCESS) return error == CUDA_ERROR_INVALID_DEVICE ? CUDA_ERROR_INVALID_VALUE : error;
  }
  return CUDA_SUCCESS;
}

// Discarded memory has any value until it is written, its old value included, so nothing is done.
CUresult discardManaged(const ManagedBatch& batch, unsigned long long flags, CUstream stream) {
  if (batch.addresses == nullptr || batch.sizes == nullptr || batch.count == 0 || flags != 0 || isLegacy(stream))
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < batch.count; ++i)
    if (CUresult bad = onManaged(batch.addresses[i], batch.sizes[i], [](Thread&) { return CUDA_SUCCESS; })) return bad;
  return onStream(stream, [](Thread&, uint64_t) { return CUDA_SUCCESS; });
}

CUresult managedAttributes(void** data, size_t* sizes, CUmem_range_attribute* attributes, size_t count, CUdeviceptr address,
                           size_t bytes) {
  return onManaged(address, bytes, [&](Thread& thread) -> CUresult {
    if (data == nullptr || sizes == nullptr || attributes == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    Common common;
    thread.session.managed.advice.visit(address, bytes, [&](const Advice& advice) { common.add(advice); });
    for (size_t i = 0; i < count; ++i) {
      if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      if (CUresult error = common.answer(attributes[i], data[i], sizes[i])) return error;
    }
    return CUDA_SUCCESS;
  });
}

// Attaches a whole allocation or variable to a stream that the program made. Only checked, as a hint: streams and host may access managed
// memory concurrently here, because the devices support that or because it is pinned memory.
CUresult attachManaged(CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags) {
  return onStream(stream, [&](Thread& thread, uint64_t handle) -> CUresult {
    auto piece = findPointer(thread, address);
    const bool isOne = flags == CU_MEM_ATTACH_SINGLE ? handle != 0 : flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST;
    const bool canBe = piece && piece->managed && !isOfPool(*piece);
    const bool isWhole = canBe && address == piece->start && (bytes == 0 || bytes == piece->bytes);
    return isOne && isWhole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace vgpu::client
