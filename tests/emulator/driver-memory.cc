#include <unistd.h>

#include <array>
#include <cstring>

#include "driver-fixture.h"

using namespace vgpu::test;

namespace {

constexpr size_t piece = 2 << 20;

CUmemAllocationProp propertiesOf(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

CUmemAccessDesc readWrite(int device) {
  return {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
}

extern "C" void vgpuEmulatorNote(uint64_t address, uint64_t bytes, const char* owner);
extern "C" void vgpuEmulatorForget(uint64_t address);

}  // namespace

TEST_CASE("memory is mapped at the requested address") {
  Device device;
  CUmemAllocationProp properties = propertiesOf(0);
  size_t granularity = 0;
  REQUIRE_CUDA(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CHECK_EQ(granularity, piece);
  CUdeviceptr base = 0;
  constexpr CUdeviceptr wanted = 0x200000000000;
  constexpr size_t reserved = size_t{4} << 40;  // reserving needs no memory
  REQUIRE_CUDA(cuMemAddressReserve(&base, reserved, 0, wanted, 0));
  CHECK_EQ(base, wanted);
  CUmemGenericAllocationHandle handle = 0;
  REQUIRE_CUDA(cuMemCreate(&handle, 2 * piece, &properties, 0));
  REQUIRE_CUDA(cuMemMap(base, 2 * piece, 0, handle, 0));
  uint32_t value = 0;
  CHECK_ANSWER(cuMemcpyDtoH(&value, base, 4), CUDA_ERROR_INVALID_VALUE);  // access is not granted yet
  CUmemAccessDesc access = readWrite(0);
  REQUIRE_CUDA(cuMemSetAccess(base, 2 * piece, &access, 1));
  unsigned long long flags = 0;
  CHECK_CUDA(cuMemGetAccess(&flags, &access.location, base));
  CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CHECK_CUDA(cuMemRelease(handle));  // the mapping keeps the memory alive
  REQUIRE_CUDA(launch(function(device.load(), "store"), nullptr, 1, base + 2 * piece - 4, 77u));
  CHECK_EQ(device.read(base + 2 * piece - 4), 77);
  CHECK_ANSWER(cuMemAddressFree(base, reserved), CUDA_ERROR_INVALID_VALUE);  // still mapped
  CHECK_CUDA(cuMemUnmap(base, 2 * piece));
  CHECK_ANSWER(cuMemcpyDtoH(&value, base, 4), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(cuMemAddressFree(base, reserved));
}

TEST_CASE("a requested address that is taken is only a hint") {
  Device device;
  CUdeviceptr first = 0, second = 0;
  REQUIRE_CUDA(cuMemAddressReserve(&first, piece, 0, 0x210000000000, 0));
  REQUIRE_CUDA(cuMemAddressReserve(&second, piece, 0, 0x210000000000, 0));
  CHECK_EQ(first, 0x210000000000);
  CHECK_NE(second, first);
  CHECK_CUDA(cuMemAddressFree(first, piece));
  CHECK_CUDA(cuMemAddressFree(second, piece));
}

TEST_CASE("a copy may cross adjacent mappings") {
  Device device;
  CUmemAllocationProp properties = propertiesOf(0);
  CUdeviceptr base = 0;
  REQUIRE_CUDA(cuMemAddressReserve(&base, 2 * piece, 0, 0x220000000000, 0));
  CUmemAccessDesc access = readWrite(0);
  for (size_t i = 0; i < 2; ++i) {
    CUmemGenericAllocationHandle handle = 0;
    REQUIRE_CUDA(cuMemCreate(&handle, piece, &properties, 0));
    REQUIRE_CUDA(cuMemMap(base + i * piece, piece, 0, handle, 0));
    REQUIRE_CUDA(cuMemRelease(handle));
  }
  REQUIRE_CUDA(cuMemSetAccess(base, 2 * piece, &access, 1));
  std::vector<uint32_t> out(1024), in(1024);
  for (uint32_t i = 0; i < out.size(); ++i) out[i] = i;
  REQUIRE_CUDA(cuMemcpyHtoD(base + piece - 2048, out.data(), 4096));
  REQUIRE_CUDA(cuMemcpyDtoH(in.data(), base + piece - 2048, 4096));
  CHECK_EQ(in, out);
  CHECK_EQ(device.read(base + piece), 512);
  REQUIRE_CUDA(cuMemUnmap(base, 2 * piece));
  REQUIRE_CUDA(cuMemAddressFree(base, 2 * piece));
}

TEST_CASE("graph nodes use the memory that is mapped at their addresses when they run") {
  Device device;
  CUmemAllocationProp properties = propertiesOf(0);
  CUmemAccessDesc access = readWrite(0);
  CUmemGenericAllocationHandle first = 0, second = 0;
  CUdeviceptr base = 0, source = device.allocate(4);
  REQUIRE_CUDA(cuMemAddressReserve(&base, piece, 0, 0, 0));
  REQUIRE_CUDA(cuMemCreate(&first, piece, &properties, 0));
  REQUIRE_CUDA(cuMemCreate(&second, piece, &properties, 0));
  auto map = [&](CUmemGenericAllocationHandle memory) {
    REQUIRE_CUDA(cuMemMap(base, piece, 0, memory, 0));
    REQUIRE_CUDA(cuMemSetAccess(base, piece, &access, 1));
  };
  map(first);
  REQUIRE_CUDA(cuMemsetD32(base, 1, piece / 4));
  REQUIRE_CUDA(cuMemsetD32(source, 8, 1));
  REQUIRE_CUDA(cuCtxSynchronize());
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  REQUIRE_CUDA(cuGraphCreate(&graph, 0));
  CUDA_MEMSET_NODE_PARAMS fill{base, 0, 7, 4, 1, 1};
  REQUIRE_CUDA(cuGraphAddMemsetNode(&node, graph, nullptr, 0, &fill, device.context));
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = source;
  copy.dstDevice = base + 4;
  copy.WidthInBytes = 4;
  copy.Height = copy.Depth = 1;
  REQUIRE_CUDA(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, device.context));
  CUstreamBatchMemOpParams write{};
  write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  write.writeValue.address = base + 8;
  write.writeValue.value = 9;
  CUDA_BATCH_MEM_OP_NODE_PARAMS words{device.context, 1, &write, 0};
  REQUIRE_CUDA(cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &words));
  CUgraphExec exec = nullptr;
  REQUIRE_CUDA(cuGraphInstantiate(&exec, graph, 0));
  REQUIRE_CUDA(cuMemUnmap(base, piece));
  map(second);
  REQUIRE_CUDA(cuGraphLaunch(exec, nullptr));
  REQUIRE_CUDA(cuCtxSynchronize());
  for (unsigned i = 0; i < 3; ++i) CHECK_EQ(device.read(base + 4 * i), 7 + i);
  REQUIRE_CUDA(cuMemUnmap(base, piece));
  map(first);
  for (unsigned i = 0; i < 3; ++i) CHECK_EQ(device.read(base + 4 * i), 1);
  REQUIRE_CUDA(cuGraphExecDestroy(exec));
  REQUIRE_CUDA(cuGraphDestroy(graph));
  REQUIRE_CUDA(cuMemUnmap(base, piece));
  REQUIRE_CUDA(cuMemRelease(first));
  REQUIRE_CUDA(cuMemRelease(second));
  REQUIRE_CUDA(cuMemAddressFree(base, piece));
}

TEST_CASE("physical memory is shared by file descriptor") {
  Device device;
  CUmemAllocationProp properties = propertiesOf(0);
  CUmemGenericAllocationHandle made = 0, imported = 0;
  REQUIRE_CUDA(cuMemCreate(&made, piece, &properties, 0));
  int fd = -1;
  REQUIRE_CUDA(cuMemExportToShareableHandle(&fd, made, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  REQUIRE_CUDA(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(fd);
  CUmemAccessDesc access = readWrite(0);
  std::array<CUdeviceptr, 2> views{};
  for (size_t i = 0; i < 2; ++i) {
    REQUIRE_CUDA(cuMemAddressReserve(&views[i], piece, 0, 0, 0));
    REQUIRE_CUDA(cuMemMap(views[i], piece, 0, i == 0 ? made : imported, 0));
    REQUIRE_CUDA(cuMemSetAccess(views[i], piece, &access, 1));
  }
  REQUIRE_CUDA(cuMemsetD32(views[0], 0xabcd1234, 1));
  CHECK_EQ(device.read(views[1]), 0xabcd1234);
  for (CUdeviceptr view : views) {
    REQUIRE_CUDA(cuMemUnmap(view, piece));
    REQUIRE_CUDA(cuMemAddressFree(view, piece));
  }
  CHECK_CUDA(cuMemRelease(made));
  CHECK_CUDA(cuMemRelease(imported));
  CHECK_ANSWER(cuMemRelease(made), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a device's memory is limited, and freed memory can be allocated again") {
  Device device;
  size_t free = 0, total = 0, after = 0;
  REQUIRE_CUDA(cuMemGetInfo(&free, &total));
  CUdeviceptr all = 0, more = 0;
  REQUIRE_CUDA(cuMemAlloc(&all, free));
  CHECK_ANSWER(cuMemAlloc(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
  CUmemAllocationProp properties = propertiesOf(0);
  CUmemGenericAllocationHandle handle = 0;
  CHECK_ANSWER(cuMemCreate(&handle, piece, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_CUDA(cuMemFree(all));
  CHECK_CUDA(cuMemGetInfo(&after, &total));
  CHECK_EQ(free, after);
  CHECK_ANSWER(cuMemAlloc(&more, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
  CHECK_CUDA(cuMemAlloc(&more, 1));
  CHECK_CUDA(cuMemFree(more));
}

TEST_CASE("an address can be traced to its allocation") {
  Device device;
  CUdeviceptr address = device.allocate(1000), base = 0;
  size_t bytes = 0;
  CHECK_CUDA(cuMemGetAddressRange(&base, &bytes, address + 999));
  CHECK_EQ(base, address);
  CHECK_EQ(bytes, 1000);
  CHECK_ANSWER(cuMemGetAddressRange(&base, &bytes, 0x1000), CUDA_ERROR_NOT_FOUND);
  CHECK_ANSWER(cuMemFree(address + 1), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(cuMemFree(address));
  CHECK_ANSWER(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("copies stay inside their allocations") {
  Device device;
  CUdeviceptr address = device.allocate(4096);
  std::vector<char> host(8192);
  CHECK_ANSWER(cuMemcpyHtoD(address, host.data(), 4097), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuMemcpyDtoH(host.data(), address + 4000, 97), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuMemsetD8(address, 0, 4097), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuMemsetD32(address + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuMemcpy(address, 0x400000f00000, 4), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(cuMemcpyHtoD(address, host.data(), 0));
}

TEST_CASE("host memory is registered at its own address") {
  Device device;
  alignas(4096) static std::array<uint32_t, 2048> memory;
  REQUIRE_CUDA(
      cuMemHostRegister(memory.data(), sizeof memory, CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE));
  CHECK_ANSWER(cuMemHostRegister(memory.data() + 4, 16, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CUdeviceptr address = 0;
  CHECK_CUDA(cuMemHostGetDevicePointer(&address, memory.data(), 0));
  CHECK_EQ(address, reinterpret_cast<CUdeviceptr>(memory.data()));
  REQUIRE_CUDA(launch(function(device.load(), "square"), nullptr, 1024, address, 1000u));
  REQUIRE_CUDA(cuCtxSynchronize());
  CHECK_EQ(memory[999], 999 * 999);
  CHECK_CUDA(cuMemHostUnregister(memory.data()));
  CHECK_ANSWER(cuMemHostUnregister(memory.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  CHECK_ANSWER(cuMemHostRegister(reinterpret_cast<void*>(0x10000), 4096, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("the source of an asynchronous pageable copy may be reused at once") {
  Device device;
  CUdeviceptr address = device.allocate(1024);
  CUstream stream = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE_CUDA(cuCtxSynchronize());
  std::vector<uint32_t> host(256, 5);
  uint32_t gate = 0;
  REQUIRE_CUDA(cuMemHostRegister(&gate, sizeof gate, 0));
  REQUIRE_CUDA(cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(&gate), 1, CU_STREAM_WAIT_VALUE_EQ));
  REQUIRE_CUDA(cuMemcpyHtoDAsync(address, host.data(), 1024, stream));
  host.assign(256, 6);
  __atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
  REQUIRE_CUDA(cuStreamSynchronize(stream));
  CHECK_EQ(device.read(address + 1020), 5);
  CHECK_CUDA(cuMemHostUnregister(&gate));
}

TEST_CASE("fills of every width and shape work") {
  Device device;
  CUdeviceptr address = device.allocate(4096);
  REQUIRE_CUDA(cuMemsetD16(address, 0x1234, 3));
  CHECK_EQ(device.read(address), 0x12341234);
  CHECK_EQ(device.read(address + 4), 0x1234);
  REQUIRE_CUDA(cuMemsetD2D32(address, 64, 7, 2, 3));
  CHECK_EQ(device.read(address + 128 + 4), 7);
  CHECK_EQ(device.read(address + 128 + 8), 0);
  REQUIRE_CUDA(cuMemsetD2D8(address, 100, 9, 1, 41));
  CHECK_ANSWER(cuMemsetD2D8(address, 100, 9, 97, 41), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuMemsetD2D8(address, 2, 9, 3, 2), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a kernel may touch noted allocations of a mapping and nothing between them") {
  Device device;
  CUmemAllocationProp properties = propertiesOf(0);
  CUdeviceptr base = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUmemAccessDesc access = readWrite(0);
  REQUIRE_CUDA(cuMemAddressReserve(&base, piece, 0, 0, 0));
  REQUIRE_CUDA(cuMemCreate(&handle, piece, &properties, 0));
  REQUIRE_CUDA(cuMemMap(base, piece, 0, handle, 0));
  REQUIRE_CUDA(cuMemSetAccess(base, piece, &access, 1));
  vgpuEmulatorNote(base + 512, 1000, "cudaMalloc in a test");
  CUfunction store = function(device.load(), "store");
  REQUIRE_CUDA(launch(store, nullptr, 1, base + 512 + 996, 1u));
  CHECK_CUDA(cuCtxSynchronize());
  SUBCASE("past the end") {
    REQUIRE_CUDA(launch(store, nullptr, 1, base + 512 + 1000, 1u));
    CHECK_ANSWER(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  SUBCASE("after it was freed") {
    vgpuEmulatorForget(base + 512);
    REQUIRE_CUDA(launch(store, nullptr, 1, base + 512, 1u));
    CHECK_ANSWER(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  vgpuEmulatorForget(base + 512);
  CHECK_CUDA(cuMemUnmap(base, piece));
  CHECK_CUDA(cuMemRelease(handle));
  CHECK_CUDA(cuMemAddressFree(base, piece));
}
