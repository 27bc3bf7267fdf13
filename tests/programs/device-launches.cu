// Kernels that launch kernels, copy and fill (CUDA Programming Guide, "CUDA Dynamic Parallelism"; nvcc -rdc=true): their order, the memory
// that they see, and the error of an impossible launch in the thread that tried it.
#include "captured-output.h"

constexpr cudaError_t notTried = cudaErrorUnknown;

__device__ unsigned noteCount, notes[64];
__device__ void takeNote(unsigned what) { notes[atomicAdd(&noteCount, 1)] = what; }
__global__ void note(unsigned what) { takeNote(what); }

// Whether the notes are these, in this order; clears the notes.
bool haveNoted(const char* what, const std::vector<unsigned>& expected) {
  unsigned count = 0;
  const unsigned none = 0;
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpyFromSymbol(&count, noteCount, sizeof count));
  std::vector<unsigned> got(std::min<size_t>(count, 64));
  if (!got.empty()) CHECK(cudaMemcpyFromSymbol(got.data(), notes, got.size() * sizeof(unsigned)));
  CHECK(cudaMemcpyToSymbol(noteCount, &none, sizeof none));
  return same(what, got, expected);
}

// ---- A tree: each grid launches two, and every leaf has 32 threads. The host's next kernel sees the work of all.
__device__ unsigned leaves;
__global__ void leaf(unsigned value) { atomicAdd(&leaves, value); }
__global__ void grow(unsigned depth) {
  if (depth == 0) {
    leaf<<<1, 32>>>(1);
  } else if (threadIdx.x == 0) {
    grow<<<1, 1>>>(depth - 1);
    grow<<<1, 2, 0, cudaStreamFireAndForget>>>(depth - 1);
  }
}
__global__ void takeLeaves(unsigned* seen) { *seen = atomicExch(&leaves, 0); }

bool growsTree(unsigned depth) {
  DeviceArray<unsigned> seen(1);
  grow<<<1, 1>>>(depth);
  takeLeaves<<<1, 1>>>(seen);
  CHECK(cudaGetLastError());
  // With a grid of two threads, each launches a leaf.
  const unsigned expected = depth == 0 ? 32 : 32 * 3 * (1u << (depth - 1));
  return same("leaves", seen.download(), {expected});
}

// ---- Order: children in one stream run in sequence; tail launches run when everything else is complete, and a tail launch's own tail
// launch runs before the next one.
__global__ void noteThenChild(unsigned what) {
  takeNote(what);
  note<<<1, 1>>>(what + 1);
}
__global__ void noteThenTail(unsigned what) {
  note<<<1, 1, 0, cudaStreamTailLaunch>>>(what + 1);
  takeNote(what);
}
__global__ void inOrder() {
  note<<<1, 1, 0, cudaStreamTailLaunch>>>(9);
  noteThenTail<<<1, 1, 0, cudaStreamTailLaunch>>>(10);
  note<<<1, 1, 0, cudaStreamTailLaunch>>>(12);
  note<<<1, 1>>>(1);
  noteThenChild<<<1, 1>>>(2);
  noteThenTail<<<1, 1>>>(4);
  note<<<1, 1>>>(6);
}

bool runsInOrder() {
  inOrder<<<1, 1>>>();
  CHECK(cudaGetLastError());
  return haveNoted("order", {1, 2, 3, 4, 5, 6, 9, 10, 11, 12});
}

// ---- A loop: a kernel that tail-launches itself.
__global__ void countDown(unsigned left, unsigned* steps) {
  ++*steps;
  if (left != 0) countDown<<<1, 1, 0, cudaStreamTailLaunch>>>(left - 1, steps);
}

bool loops(unsigned times) {
  DeviceArray<unsigned> steps(std::vector<unsigned>{0});
  countDown<<<1, 1>>>(times, steps);
  CHECK(cudaGetLastError());
  return same("steps", steps.download(), {times + 1});
}

// ---- Parameters of every size, from all threads of several blocks at once; dynamic shared memory.
struct Mixed {
  char letter;
  short number;
  double scale;
  unsigned words[37];
};
__global__ void reverse(unsigned* out, Mixed mixed, char plus) {
  extern __shared__ unsigned line[];
  line[threadIdx.x] = mixed.words[threadIdx.x] * static_cast<unsigned>(mixed.scale) + mixed.letter + mixed.number + plus;
  __syncthreads();
  out[threadIdx.x] = line[blockDim.x - 1 - threadIdx.x];
}
__global__ void reverseAll(unsigned* out, cudaError_t* errors) {
  const unsigned self = blockIdx.x * blockDim.x + threadIdx.x;
  Mixed mixed{'a', -5, 3.0, {}};
  for (unsigned i = 0; i < 37; ++i) mixed.words[i] = self * 100 + i;
  reverse<<<1, 37, 37 * sizeof(unsigned)>>>(out + self * 37, mixed, 2);
  errors[self] = cudaGetLastError();
}

bool passesParameters() {
  const unsigned blocks = 8, threads = 48, launches = blocks * threads;
  DeviceArray<unsigned> out(launches * 37);
  DeviceArray<cudaError_t> errors(launches);
  reverseAll<<<blocks, threads>>>(out, errors);
  CHECK(cudaGetLastError());
  std::vector<unsigned> expected;
  for (unsigned self = 0; self < launches; ++self)
    for (unsigned i = 0; i < 37; ++i) expected.push_back((self * 100 + 36 - i) * 3 + 'a' - 5 + 2);
  return same("errors", errors.download(), std::vector<cudaError_t>(launches, cudaSuccess)) &
         same("reversed", out.download(), expected);
}

// ---- Streams, and events between them.
__global__ void twice(unsigned* value) { *value *= 2; }
__global__ void addTo(unsigned* value, unsigned what) { *value += what; }
__global__ void withStreams(unsigned* value, cudaError_t* errors) {
  cudaStream_t first, second;
  cudaEvent_t event;
  int at = 0;
  errors[at++] = cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  errors[at++] = cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  errors[at++] = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  addTo<<<1, 1, 0, first>>>(value, 5);
  twice<<<1, 1, 0, first>>>(value);
  errors[at++] = cudaEventRecord(event, first);
  errors[at++] = cudaStreamWaitEvent(second, event, 0);
  addTo<<<1, 1, 0, second>>>(value, 1);
  twice<<<1, 1, 0, second>>>(value);
  errors[at++] = cudaGetLastError();
  errors[at++] = cudaEventDestroy(event);
  errors[at++] = cudaStreamDestroy(first);
  errors[at++] = cudaStreamDestroy(second);
}

bool usesStreams() {
  DeviceArray<unsigned> value(std::vector<unsigned>{2});
  DeviceArray<cudaError_t> errors(std::vector<cudaError_t>(9, notTried));
  withStreams<<<1, 1>>>(value, errors);
  CHECK(cudaGetLastError());
  return same("of streams", errors.download(), std::vector<cudaError_t>(9, cudaSuccess)) & same("value", value.download(), {30});
}

// ---- Copies and fills, between children in their stream. Fills use zero, because the runtime of CUDA 13.0 always writes zeros
// (docs/facts.md).
__global__ void addOne(unsigned char* bytes) { ++bytes[threadIdx.x]; }
__global__ void withCopies(unsigned char* bytes, cudaError_t* errors) {
  int at = 0;
  errors[at++] = cudaMemsetAsync(bytes, 0, 64, 0);
  addOne<<<1, 16>>>(bytes);
  errors[at++] = cudaMemcpyAsync(bytes + 64, bytes + 8, 16, cudaMemcpyDeviceToDevice, 0);
  errors[at++] = cudaMemset2DAsync(bytes + 80, 8, 0, 3, 4, 0);
  errors[at++] = cudaMemcpy2DAsync(bytes + 112, 4, bytes + 80, 8, 4, 4, cudaMemcpyDeviceToDevice, 0);
  errors[at++] = cudaMemset3DAsync(cudaPitchedPtr{bytes + 128, 4, 4, 4}, 0, cudaExtent{2, 2, 2}, 0);
  cudaMemcpy3DParms copy{};
  copy.srcPtr = {bytes + 128, 4, 4, 4};
  copy.dstPtr = {bytes + 160, 4, 4, 4};
  copy.srcPos = {1, 1, 0};
  copy.extent = {2, 2, 2};
  copy.kind = cudaMemcpyDeviceToDevice;
  errors[at++] = cudaMemcpy3DAsync(&copy, 0);
  errors[at++] = cudaMemcpyAsync(bytes, bytes + 111, 1, cudaMemcpyDeviceToDevice, cudaStreamTailLaunch);
}

bool copies() {
  std::vector<unsigned char> expected(192);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<unsigned char>(i);
  DeviceArray<unsigned char> bytes(expected);
  DeviceArray<cudaError_t> errors(std::vector<cudaError_t>(7, notTried));
  withCopies<<<1, 1>>>(bytes, errors);
  CHECK(cudaGetLastError());
  for (int i = 0; i < 64; ++i) expected[i] = i < 16;
  for (int i = 0; i < 16; ++i) expected[64 + i] = expected[8 + i];
  for (int row = 0; row < 4; ++row) {
    for (int x = 0; x < 3; ++x) expected[80 + row * 8 + x] = 0;
    for (int x = 0; x < 4; ++x) expected[112 + row * 4 + x] = expected[80 + row * 8 + x];
  }
  for (int layer = 0; layer < 2; ++layer) {
    for (int i = 0; i < 4; ++i) expected[128 + layer * 16 + i / 2 * 4 + i % 2] = 0;
    for (int i = 0; i < 4; ++i)
      expected[160 + layer * 16 + i / 2 * 4 + i % 2] = expected[128 + layer * 16 + (i / 2 + 1) * 4 + i % 2 + 1];
  }
  expected[0] = 111;  // added by the tail launch
  return same("of copies", errors.download(), std::vector<cudaError_t>(7, cudaSuccess)) &
         same("bytes", bytes.download(), expected);
}

// ---- Impossible launches: each thread has its own error, until it reads it.
__global__ void wrong(cudaError_t* errors, unsigned blockSize, unsigned sharedBytes) {
  cudaError_t* mine = errors + threadIdx.x * 5;
  if (threadIdx.x == 1) note<<<1, blockSize>>>(1);
  if (threadIdx.x == 2) note<<<0, 1>>>(1);
  if (threadIdx.x == 3) note<<<1, 1, sharedBytes>>>(1);
  mine[0] = cudaPeekAtLastError();
  note<<<1, 1>>>(2);  // possible, and does not change the earlier error
  mine[1] = cudaGetLastError();
  mine[2] = cudaGetLastError();
  mine[3] = cudaMemcpyAsync(mine, mine, 4, cudaMemcpyHostToDevice, 0);
  mine[4] = cudaGetLastError();
}

bool refuses() {
  DeviceArray<cudaError_t> errors(std::vector<cudaError_t>(20, notTried));
  wrong<<<1, 4>>>(errors, 2000, 1 << 20);
  CHECK(cudaGetLastError());
  bool ok = haveNoted("possible launches", {2, 2, 2, 2});
  std::vector<cudaError_t> expected;
  for (int thread = 0; thread < 4; ++thread) {
    const cudaError_t launch = thread == 0 ? cudaSuccess : cudaErrorInvalidConfiguration, copy = cudaErrorInvalidMemcpyDirection;
    expected.insert(expected.end(), {launch, launch, cudaSuccess, copy, copy});
  }
  return ok & same("errors of threads", errors.download(), expected);
}

// ---- At most cudaLimitDevRuntimePendingLaunchCount tail launches are pending.
__global__ void tooMany(unsigned launches, unsigned* counts) {
  for (unsigned i = 0; i < launches; ++i) {
    leaf<<<1, 1, 0, cudaStreamTailLaunch>>>(1);
    const cudaError_t error = cudaGetLastError();
    ++counts[error == cudaSuccess ? 0 : error == cudaErrorLaunchPendingCountExceeded ? 1 : 2];
  }
}

bool countsLaunches() {
  size_t limit = 0;
  CHECK(cudaDeviceGetLimit(&limit, cudaLimitDevRuntimePendingLaunchCount));
  const unsigned most = static_cast<unsigned>(limit);
  DeviceArray<unsigned> counts(std::vector<unsigned>(3)), seen(1);
  tooMany<<<1, 1>>>(most + 10, counts);
  takeLeaves<<<1, 1>>>(seen);
  CHECK(cudaGetLastError());
  return same("tail launches", counts.download(), {most, 10, 0}) & same("those that ran", seen.download(), {most});
}

// ---- Kernels and the host get the same attributes of the device and of a kernel.
struct Figures {
  int warpSize, mostThreads, blocks;
  size_t stackBytes, pending;
};
__host__ __device__ cudaError_t ask(Figures* figures) {
  cudaFuncAttributes attributes{};
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&figures->warpSize, cudaDevAttrWarpSize, device);
  if (error == cudaSuccess) error = cudaDeviceGetLimit(&figures->stackBytes, cudaLimitStackSize);
  if (error == cudaSuccess) error = cudaDeviceGetLimit(&figures->pending, cudaLimitDevRuntimePendingLaunchCount);
  if (error == cudaSuccess) error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&figures->blocks, note, 128, 0);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, note);
  figures->mostThreads = attributes.maxThreadsPerBlock;
  return error;
}
__global__ void askOnDevice(Figures* figures, cudaError_t* error) { *error = ask(figures); }

bool answers() {
  Figures onHost{};
  CHECK(ask(&onHost));
  DeviceArray<Figures> figures(1);
  DeviceArray<cudaError_t> error(std::vector<cudaError_t>{notTried});
  askOnDevice<<<1, 1>>>(figures, error);
  CHECK(cudaGetLastError());
  const Figures onDevice = figures.download()[0];
  return same("of questions", error.download(), {cudaSuccess}) & EXPECT(onDevice.warpSize == onHost.warpSize) &
         EXPECT(onDevice.mostThreads == onHost.mostThreads) & EXPECT(onDevice.blocks == onHost.blocks) &
         EXPECT(onDevice.stackBytes == onHost.stackBytes) & EXPECT(onDevice.pending == onHost.pending);
}

// ---- Output: kernels' printf output appears in the order in which they run.
__global__ void say(const char* who, int depth) {
  printf("%s at depth %d: %s\n", who, depth, cudaGetErrorName(depth < 2 ? cudaSuccess : cudaErrorInvalidConfiguration));
  if (depth < 2) say<<<1, 1>>>("child", depth + 1);
}
__global__ void begin() { say<<<1, 1>>>("parent", 0); }

constexpr const char* said =
    "parent at depth 0: cudaSuccess\nchild at depth 1: cudaSuccess\nchild at depth 2: cudaErrorInvalidConfiguration\n";

bool runAll(unsigned depth) {
  bool ok = growsTree(depth) & runsInOrder() & loops(100 * depth) & passesParameters() & usesStreams() & copies();
  ok &= refuses() & countsLaunches() & answers();
  begin<<<1, 1>>>();
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  return ok;
}

int main() {
  CapturedOutput output(CapturedOutput::Into::file);
  bool ok = runAll(3);
  pausePoint();
  ok &= runAll(5);
  ok &= sameText("standard output", output.finish(), std::string(said) + said);
  return verdict("device-launches", ok);
}
