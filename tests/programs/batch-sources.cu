// A batch of copies whose sources must be read during the call returns only when they have been read, also those in device memory: the
// program may overwrite them at once.
#include "program.h"

namespace {

struct Hold {
  std::atomic<bool> isOverwritten{false};
};

// Holds the stream until the program has overwritten the source. If the call waits for the copies, the program overwrites it only
// afterwards, so the stream is held for at most a fifth of a second.
void CUDART_CB awaitOverwritten(void* hold) {
  for (int i = 0; i < 2000 && !static_cast<Hold*>(hold)->isOverwritten; ++i) usleep(100);
}

struct Ends {
  DeviceArray<int> from{std::vector<int>{1}}, to{std::vector<int>{0}};
  cudaStream_t stream, other;
  Ends() {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  }
  ~Ends() {
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaStreamDestroy(other));
  }
};

template <typename Copy>
bool isReadDuringTheCall(Copy copy) {
  Ends ends;
  Hold hold;
  CHECK(cudaLaunchHostFunc(ends.stream, awaitOverwritten, &hold));
  CHECK(copy(ends));
  CHECK(cudaMemsetAsync(ends.from, 7, sizeof(int), ends.other));
  CHECK(cudaStreamSynchronize(ends.other));
  hold.isOverwritten = true;
  CHECK(cudaStreamSynchronize(ends.stream));
  return EXPECT(ends.to.download()[0] == 1);
}

cudaError_t copyRow(Ends& ends) {
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
  void* to = ends.to;
  const void* from = ends.from;
  size_t bytes = sizeof(int), beginning = 0;
  return cudaMemcpyBatchAsync(&to, &from, &bytes, 1, &attributes, &beginning, 1, ends.stream);
}

cudaError_t copyBox(Ends& ends) {
  cudaMemcpy3DBatchOp copy{};
  copy.src.type = copy.dst.type = cudaMemcpyOperandTypePointer;
  copy.src.op.ptr.ptr = ends.from;
  copy.dst.op.ptr.ptr = ends.to;
  copy.extent = {sizeof(int), 1, 1};
  copy.srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
  return cudaMemcpy3DBatchAsync(1, &copy, 0, ends.stream);
}

}  // namespace

int main() {
  bool ok = isReadDuringTheCall(copyRow) & isReadDuringTheCall(copyBox);
  pausePoint();
  ok &= isReadDuringTheCall(copyRow) & isReadDuringTheCall(copyBox);
  return verdict("batch-sources", ok);
}
