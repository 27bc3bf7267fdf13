// Memory of every kind, and copies.
#pragma once

#include "../exportable-pool.h"
#include "../managed.h"
#include <cstring>

#include "place.h"

namespace families {

inline bool memory(const Place& place) {
  uint32_t* data = nullptr;
  CHECK(cudaMalloc(&data, place.bytes()));
  place.write(data, place.numbers());
  place.add(data, 1);
  const bool ok = place.holds("memory", data, 1);
  CHECK(cudaFree(data));
  return ok;
}

inline bool pool(const Place& place) {
  uint32_t *data = nullptr, *copy = nullptr;
  CHECK(cudaMallocAsync(&data, place.bytes(), place.stream));
  CHECK(cudaMallocAsync(&copy, place.bytes(), place.stream));
  place.write(data, place.numbers());
  CHECK(cudaMemsetAsync(copy, 0xff, place.bytes(), place.stream));
  place.add(data, 2);
  CHECK(cudaMemcpyAsync(copy, data, place.bytes(), cudaMemcpyDeviceToDevice, place.stream));
  CHECK(cudaFreeAsync(data, place.stream));
  const bool ok = place.holds("pool", copy, 2);
  CHECK(cudaFreeAsync(copy, place.stream));
  return ok;
}

// A pool of the thread's own, which could be exported to other processes.
inline bool sharedPool(const Place& place) {
  int descriptor = -1;
  const cudaMemPool_t pool = exportablePool(descriptor);
  uint32_t* data = nullptr;
  cudaMemPoolPtrExportData exported{};
  uint64_t used = 0;
  CHECK(cudaMallocFromPoolAsync(&data, place.bytes(), pool, place.stream));
  place.write(data, place.numbers());
  place.wait();
  CHECK(cudaMemPoolExportPointer(&exported, data));
  place.add(data, 3);
  bool ok = EXPECT(descriptor >= 0) & place.holds("pool to be shared", data, 3);
  CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  ok &= EXPECT(used >= place.bytes());
  CHECK(cudaFreeAsync(data, place.stream));
  place.wait();
  close(descriptor);
  CHECK(cudaMemPoolTrimTo(pool, 0));
  CHECK(cudaMemPoolDestroy(pool));
  return ok;
}

inline bool pinned(const Place& place) {
  uint32_t* data = nullptr;
  CHECK(cudaMallocHost(&data, place.bytes()));
  const Numbers values = place.numbers();
  std::copy(values.begin(), values.end(), data);
  place.add(data, 3);
  place.wait();
  const bool ok = same("pinned", Numbers(data, data + place.count()), place.numbers(3));
  CHECK(cudaFreeHost(data));
  return ok;
}

inline bool managed(const Place& place) {
  uint32_t* data = nullptr;
  CHECK(cudaMallocManaged(&data, place.bytes()));
  CHECK(cudaStreamAttachMemAsync(place.stream, data, 0, cudaMemAttachSingle));
  place.wait();
  const Numbers values = place.numbers();
  std::copy(values.begin(), values.end(), data);
  place.add(data, 11);
  place.wait();
  const bool ok = same("managed", Numbers(data, data + place.count()), place.numbers(11));
  CHECK(cudaFree(data));
  return ok;
}

// Managed memory that is prefetched before either side uses it, to any device that supports it. In a quarter of the cases it is large
// enough to be moved.
inline bool prefetched(const Place& place) {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  for (int device = 0; device < devices; ++device)
    if (!isConcurrent(device)) return true;
  const cudaMemLocation device{cudaMemLocationTypeDevice, static_cast<int>(place.seed / 4) % devices}, host{cudaMemLocationTypeHost, 0};
  const size_t size = place.seed % 4 == 0 ? 2 << 20 : place.bytes();
  uint32_t* data = nullptr;
  CHECK(cudaMallocManaged(&data, size));
  CHECK(cudaMemAdvise(data, place.bytes(), cudaMemAdviseSetPreferredLocation, device));
  const Numbers values = place.numbers();
  std::copy(values.begin(), values.end(), data);
  CHECK(cudaMemPrefetchAsync(data, size, device, 0, place.stream));
  place.add(data, 4);
  CHECK(cudaMemPrefetchAsync(data, place.bytes(), host, 0, place.stream));
  place.wait();
  const bool ok = same("prefetched", Numbers(data, data + place.count()), place.numbers(4));
  CHECK(cudaFree(data));
  return ok;
}

// Memory that the program maps itself: at one address and, through a descriptor, at a second one.
inline bool virtualMemory(const Place& place) {
  CUmemAllocationProp of{};
  of.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  of.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  of.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemAccessDesc access{of.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  size_t bytes = 0;
  CUdeviceptr address;
  CUmemGenericAllocationHandle physical, again;
  int descriptor = -1;
  CALL(cuMemGetAllocationGranularity, &bytes, &of, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  CALL(cuMemAddressReserve, &address, 2 * bytes, 0, 0, 0);
  CALL(cuMemCreate, &physical, bytes, &of, 0);
  CALL(cuMemExportToShareableHandle, &descriptor, physical, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  CALL(cuMemImportFromShareableHandle, &again, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  close(descriptor);
  CALL(cuMemMap, address, bytes, 0, physical, 0);
  CALL(cuMemMap, address + bytes, bytes, 0, again, 0);
  CALL(cuMemSetAccess, address, 2 * bytes, &access, 1);
  auto *data = reinterpret_cast<uint32_t*>(address), *other = reinterpret_cast<uint32_t*>(address + bytes);
  place.write(data, place.numbers());
  place.add(data, 12);
  place.wait();  // accesses by two addresses are ordered only between kernels (CUDA Programming Guide, "Virtual Aliasing Support")
  bool ok = place.holds("mapped again", other, 12);
  place.add(other, 1);
  place.wait();
  ok &= place.holds("virtual memory", data, 13);
  CALL(cuMemUnmap, address, bytes);
  CALL(cuMemUnmap, address + bytes, bytes);
  CALL(cuMemRelease, physical);
  CALL(cuMemRelease, again);
  CALL(cuMemAddressFree, address, 2 * bytes);
  return ok;
}

// Physical memory of the host, which the program and its GPU use at one address, and at a second one.
inline bool hostPhysical(const Place& place) {
  int isSupported = 0;
  CALL(cuDeviceGetAttribute, &isSupported, CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0);
  if (!isSupported) return true;
  CUmemAllocationProp of{};
  of.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  of.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
  const CUmemAccessDesc access[] = {{of.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
                                    {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
  size_t bytes = 0;
  CUdeviceptr address;
  CUmemGenericAllocationHandle physical;
  CALL(cuMemGetAllocationGranularity, &bytes, &of, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  CALL(cuMemAddressReserve, &address, 2 * bytes, 0, 0, 0);
  CALL(cuMemCreate, &physical, bytes, &of, 0);
  for (CUdeviceptr at : {address, address + bytes}) CALL(cuMemMap, at, bytes, 0, physical, 0);
  CALL(cuMemRelease, physical);
  CALL(cuMemSetAccess, address, 2 * bytes, access, 2);
  auto *data = reinterpret_cast<uint32_t*>(address), *other = reinterpret_cast<uint32_t*>(address + bytes);
  const Numbers values = place.numbers();
  std::copy(values.begin(), values.end(), data);
  place.add(other, 14);
  place.wait();
  const bool ok = same("the host's physical memory", Numbers(data, data + place.count()), place.numbers(14));
  CALL(cuMemUnmap, address, 2 * bytes);
  CALL(cuMemAddressFree, address, 2 * bytes);
  return ok;
}

// A batch of copies in every direction, and rows with pitches.
inline bool batches(const Place& place) {
  const size_t row = 16 * sizeof(uint32_t), pitch = 3 * row, rows = place.count() / 16;
  DeviceArray<uint32_t> first(place.count()), second(place.count()), apart(3 * place.count());
  uint32_t* pinned = nullptr;
  CHECK(cudaMallocHost(&pinned, place.bytes()));
  const Numbers values = place.numbers();
  Numbers found(place.count()), inRows(16 * rows);
  std::copy(values.begin(), values.end(), pinned);
  cudaMemcpyAttributes inOrder{};
  inOrder.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t begins = 0, sizes[] = {place.bytes(), place.bytes()};
  void *to[] = {first, second}, *back[] = {found.data(), pinned};
  const void *from[] = {pinned, values.data()}, *out[] = {first, second};
  CHECK(cudaMemcpyBatchAsync(to, from, sizes, 2, &inOrder, &begins, 1, place.stream));
  place.add(first, 5);
  place.add(second, 6);
  CHECK(cudaMemcpy2DAsync(apart, pitch, first, row, row, rows, cudaMemcpyDeviceToDevice, place.stream));
  CHECK(cudaMemcpy2DAsync(inRows.data(), row, apart, pitch, row, rows, cudaMemcpyDeviceToHost, place.stream));
  CHECK(cudaMemcpyBatchAsync(back, out, sizes, 2, &inOrder, &begins, 1, place.stream));
  place.wait();
  bool ok = same("batch", found, place.numbers(5)) & same("pinned of a batch", Numbers(pinned, pinned + place.count()), place.numbers(6));
  found.resize(inRows.size());
  ok &= same("rows", inRows, found);
  CHECK(cudaFreeHost(pinned));
  return ok;
}

// A refused call leaves its error only in the thread that made it.
inline bool errors(const Place& place) {
  void* data = nullptr;
  bool ok = EXPECT(cudaPeekAtLastError() == cudaSuccess);
  ok &= EXPECT_ERROR(cudaMalloc(&data, size_t{1} << 60), cudaErrorMemoryAllocation);
  ok &= EXPECT_ERROR(cudaGetLastError(), cudaErrorMemoryAllocation);
  ok &= EXPECT_ERROR(cudaMemsetAsync(nullptr, 0, 4, place.stream), cudaErrorInvalidValue);
  return ok & EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
}

// Each failed call is reported to every callback, together with those of other threads, and is in the log.
inline bool logs(const Place& place) {
  std::atomic<unsigned> told{0};
  cudaLogsCallbackHandle listener;
  auto hear = [](void* data, cudaLogLevel, char* message, size_t) {
    *static_cast<std::atomic<unsigned>*>(data) += std::strstr(message, "cuStreamWaitEvent") != nullptr;
  };
  CHECK(cudaLogsRegisterCallback(hear, &told, &listener));
  cudaLogIterator at = 0;
  CHECK(cudaLogsCurrent(&at, 0));
  bool ok = EXPECT_ERROR(cudaStreamWaitEvent(place.stream, nullptr, 0), cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  std::vector<char> lines(32 * 1024);
  size_t size = lines.size();
  CHECK(cudaLogsDumpToMemory(&at, lines.data(), &size, 0));
  CHECK(cudaLogsUnregisterCallback(listener));
  return ok & EXPECT(told != 0) & EXPECT(size > 0);
}

}  // namespace families
