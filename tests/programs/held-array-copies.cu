// Copies of pageable memory into arrays behind work that is held: more than there are slabs return at once, those of another thread go on
// meanwhile, and all arrive.
#include "await-flag.h"
#include "program.h"

#include <memory>
#include <thread>

namespace {

unsigned char byteOf(size_t copy, size_t i) { return static_cast<unsigned char>(copy * 7 + i / 64 * 3 + 5); }

class Array {
 public:
  // Of bytes; 0 slices: of two dimensions.
  Array(size_t width, size_t height, size_t depth) : width(width), height(height), depth(depth) {
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned char>();
    CHECK(cudaMalloc3DArray(&array, &format, cudaExtent{width, height, depth}));
  }
  ~Array() { CHECK(cudaFreeArray(array)); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  void post(size_t copy, cudaStream_t stream) const {
    std::vector<unsigned char> from(bytes());
    for (size_t i = 0; i < from.size(); ++i) from[i] = byteOf(copy, i);
    if (depth == 0) {
      CHECK(cudaMemcpy2DToArrayAsync(array, 0, 0, from.data(), width, width, height, cudaMemcpyHostToDevice, stream));
      return;
    }
    cudaMemcpy3DParms params{};
    params.srcPtr = make_cudaPitchedPtr(from.data(), width, width, height);
    params.dstArray = array;
    params.extent = {width, height, depth};
    params.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3DAsync(&params, stream));
  }
  bool has(size_t copy) const {
    std::vector<unsigned char> got(bytes());
    cudaMemcpy3DParms params{};
    params.srcArray = array;
    params.dstPtr = make_cudaPitchedPtr(got.data(), width, width, height);
    params.extent = {width, height, std::max<size_t>(depth, 1)};
    params.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&params));
    for (size_t i = 0; i < got.size(); ++i)
      if (got[i] != byteOf(copy, i)) return EXPECT(got[i] == byteOf(copy, i));
    return true;
  }

 private:
  size_t bytes() const { return width * height * std::max<size_t>(depth, 1); }

  size_t width, height, depth;
  cudaArray_t array;
};

struct Held {
  cudaStream_t stream;
  std::atomic<bool> mayGoOn{false};
  Held() {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaLaunchHostFunc(stream, awaitFlag, &mayGoOn));
  }
  ~Held() { CHECK(cudaStreamDestroy(stream)); }
  void goOn() {
    mayGoOn = true;
    CHECK(cudaStreamSynchronize(stream));
  }
};

// So many copies in one stream, each to an array of its own. Another thread's go on, as does what it copies back.
bool takesMany(size_t count, size_t width, size_t height, size_t depth) {
  std::vector<std::unique_ptr<Array>> arrays;
  for (size_t i = 0; i <= count; ++i) arrays.push_back(std::make_unique<Array>(width, height, depth));
  Held held;
  for (size_t copy = 0; copy < count; ++copy) arrays[copy]->post(copy, held.stream);
  bool ok = true;
  std::thread([&] {
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    arrays[count]->post(count, stream);
    CHECK(cudaStreamSynchronize(stream));
    ok &= arrays[count]->has(count);
    CHECK(cudaStreamDestroy(stream));
  }).join();
  held.goOn();
  for (size_t copy = 0; copy < count; ++copy) ok &= arrays[copy]->has(copy);
  return EXPECT(ok);
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  bool ok = takesMany(150, 256, 60, 0) & takesMany(100, 512, 10, 4);
  pausePoint();
  ok &= takesMany(120, 1000, 20, 0);
  return verdict("held-array-copies", ok);
}
