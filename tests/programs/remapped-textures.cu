// Textures over memory that the program maps itself. It unmaps the memory, or denies its device access, before the suspend; the textures
// read the memory that it maps there, or allows again, afterwards.
#include "shared-physical.h"

namespace {

constexpr unsigned elements = 64;

__global__ void readAll(cudaTextureObject_t row, cudaTextureObject_t rows, unsigned* out) {
  const unsigned i = threadIdx.x;
  out[i] = tex1Dfetch<unsigned>(row, static_cast<int>(i)) + tex2D<unsigned>(rows, i % 32, i / 32);
}

CUmemGenericAllocationHandle create() {
  const CUmemAllocationProp properties = exportable();
  CUmemGenericAllocationHandle physical;
  CALL(cuMemCreate, &physical, granularity(), &properties, 0);
  return physical;
}

cudaTextureObject_t textureOver(const cudaResourceDesc& resource) {
  const cudaTextureDesc how{};  // reads elements unconverted
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  return texture;
}

class Textures {
 public:
  Textures() {
    const CUmemGenericAllocationHandle physical = create();
    memory = map(physical);
    CALL(cuMemRelease, physical);
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear = {memory, cudaCreateChannelDesc<unsigned>(), elements * sizeof *memory};
    row = textureOver(resource);
    resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D = {memory, cudaCreateChannelDesc<unsigned>(), 32, elements / 32, 32 * sizeof *memory};
    rows = textureOver(resource);
  }
  ~Textures() {
    CHECK(cudaDestroyTextureObject(row));
    CHECK(cudaDestroyTextureObject(rows));
    unmap(memory);
  }
  Textures(const Textures&) = delete;
  Textures& operator=(const Textures&) = delete;

  void sleep() { CALL(cuMemUnmap, reinterpret_cast<CUdeviceptr>(memory), granularity()); }
  void wake() {
    const CUmemGenericAllocationHandle physical = create();
    CALL(cuMemMap, reinterpret_cast<CUdeviceptr>(memory), granularity(), 0, physical, 0);
    CALL(cuMemRelease, physical);
    allow(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
  void allow(CUmemAccess_flags flags) {
    const CUmemAccessDesc access{exportable().location, flags};
    CALL(cuMemSetAccess, reinterpret_cast<CUdeviceptr>(memory), granularity(), &access, 1);
  }
  bool read(unsigned first) {
    std::vector<unsigned> values(elements), expected(elements);
    for (unsigned i = 0; i < elements; ++i) expected[i] = 2 * (values[i] = first + i);
    CHECK(cudaMemcpy(memory, values.data(), elements * sizeof *memory, cudaMemcpyHostToDevice));
    DeviceArray<unsigned> out(elements);
    readAll<<<1, elements>>>(row, rows, out);
    return EXPECT_ERROR(cudaDeviceSynchronize(), cudaSuccess) && same("textures", out.download(), expected);
  }

 private:
  unsigned* memory;
  cudaTextureObject_t row, rows;
};

}  // namespace

int main() {
  Textures wokenBefore, wokenBehind, denied, neverWoken;
  bool ok = wokenBefore.read(1) & wokenBehind.read(2) & denied.read(3) & neverWoken.read(4);
  for (Textures* each : {&wokenBefore, &wokenBehind, &neverWoken}) each->sleep();
  wokenBefore.wake();
  denied.allow(CU_MEM_ACCESS_FLAGS_PROT_NONE);
  pausePoint();
  wokenBehind.wake();
  denied.allow(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  ok &= wokenBefore.read(5) & wokenBehind.read(6) & denied.read(7);
  neverWoken.wake();  // so that the destructor can unmap it
  return verdict("remapped-textures", ok);
}
