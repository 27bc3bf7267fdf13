// Managed memory as programs use it: host and kernels write parts of one page in turn, copies and fills use it, host functions and system
// calls write to it, threads use separate pieces concurrently, and a kernel's parameters lie in it. Memory that was not written is zero.
#include <sys/socket.h>
#include <sys/uio.h>

#include <csignal>
#include <csetjmp>
#include <cstring>
#include <thread>

#include "managed.h"

__global__ void addToEven(int* data, int count, int value) {
  const int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) data[i] += value;
}

__global__ void sum(const int* data, int count, long long* out) {
  long long total = 0;
  for (int i = 0; i < count; ++i) total += data[i];
  *out = total;
}

struct Request {
  int* data;
  int count, value;
};
__global__ void serve(Request request) {
  for (int i = 0; i < request.count; ++i) request.data[i] = request.value + i;
}

namespace {

template <typename T>
T* managed(size_t count) {
  T* data = nullptr;
  CHECK(cudaMallocManaged(&data, count * sizeof(T)));
  return data;
}

void synchronize() { CHECK(cudaDeviceSynchronize()); }

// Host and device write alternate words of the same pages; the host between two launches, and none of its writes may be lost.
bool sharesPages() {
  constexpr int count = 300 * 1000;
  int* data = managed<int>(count);
  bool ok = EXPECT(data[0] == 0) & EXPECT(data[count - 1] == 0);
  for (int i = 0; i < count; ++i) data[i] = i;
  for (int round = 1; round <= 3; ++round) {
    addToEven<<<blocksFor(count / 2, 256), 256>>>(data, count, 10);
    synchronize();
    for (int i = 1; i < count; i += 2) ++data[i];
    if (round == 2) pausePoint();  // host and device each have the newest bytes of some page
  }
  addToEven<<<blocksFor(count / 2, 256), 256>>>(data, count, 10);
  synchronize();
  for (int i = 0; i < count; ++i)
    if (data[i] != i + (i % 2 == 0 ? 40 : 3)) {
      std::fprintf(stderr, "data[%d] is %d\n", i, data[i]);
      ok = false;
      break;
    }
  CHECK(cudaFree(data));
  return ok;
}

bool isZeroWhereNobodyWrote() {
  constexpr int count = 100 * 1000;
  int* before = managed<int>(count);
  std::memset(before, 1, count * sizeof(int));
  addToEven<<<1, 32>>>(before, count, 1);
  synchronize();
  CHECK(cudaFree(before));
  int* data = managed<int>(count);  // perhaps at the freed address
  addToEven<<<1, 32>>>(data, 64, 1);
  synchronize();
  bool ok = EXPECT(data[0] == 1) & EXPECT(data[1] == 0) & EXPECT(data[count - 1] == 0);
  CHECK(cudaFree(data));
  return ok;
}

bool isCopiedAndFilled() {
  constexpr int count = 5000;
  int* data = managed<int>(count);
  for (int i = 0; i < count; ++i) data[i] = 7;
  std::vector<int> part(count / 2, 3), got(count);
  CHECK(cudaMemcpy(data, part.data(), part.size() * sizeof(int), cudaMemcpyDefault));  // the other half belongs to the host
  CHECK(cudaMemset(data + count - 10, 0, 10 * sizeof(int)));
  CHECK(cudaMemcpy(got.data(), data, count * sizeof(int), cudaMemcpyDefault));
  bool ok = EXPECT(got[0] == 3) & EXPECT(got[count / 2] == 7) & EXPECT(got[count - 1] == 0);
  ok &= EXPECT(data[count / 2 - 1] == 3) & EXPECT(data[count / 2] == 7) & EXPECT(data[count - 1] == 0);
  data[5] = 8;
  DeviceArray<int> device(static_cast<size_t>(count));
  CHECK(cudaMemcpy(device, data, count * sizeof(int), cudaMemcpyDeviceToDevice));
  return ok & EXPECT(device.download()[5] == 8);
}

struct Written {
  int* data;
  int count;
};

// The kernel behind the function is launched before the function runs.
bool isWrittenByHostFunctions() {
  Written written{managed<int>(1000), 1000};
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  long long* total = managed<long long>(1);
  loadKernel(sum);  // its first launch would wait for the stream, and the stream's function for the memory
  serve<<<1, 1, 0, stream>>>({written.data, written.count, 100});
  auto function = [](void* argument) {
    auto& written = *static_cast<Written*>(argument);
    for (int i = 0; i < written.count; ++i) written.data[i] -= 100;
  };
  CHECK(cudaLaunchHostFunc(stream, function, &written));
  sum<<<1, 1, 0, stream>>>(written.data, written.count, total);
  CHECK(cudaStreamSynchronize(stream));
  bool ok = EXPECT(*total == 999 * 1000 / 2);
  CHECK(cudaStreamDestroy(stream));
  return ok;
}

// A thread's pages move to the device with every launch of another thread.
bool isUsedBesideLaunches() {
  constexpr int count = 50 * 1000;
  int *mine = managed<int>(count), *theirs = managed<int>(count);
  std::atomic<bool> ends{false};
  std::thread launches([&] {
    while (!ends) {
      addToEven<<<1, 256>>>(theirs, 512, 1);
      CHECK(cudaStreamSynchronize(nullptr));
    }
  });
  for (int round = 0; round < 20; ++round)
    for (int i = 0; i < count; ++i) mine[i] += i;
  ends = true;
  launches.join();
  bool ok = EXPECT(theirs[0] == theirs[510]) & EXPECT(theirs[1] == 0);
  for (int i = 0; i < count && ok; ++i) ok &= EXPECT(mine[i] == 20 * i);
  return ok;
}

// Two threads, host and kernels, use separate words of one page concurrently.
bool isSharedAtTheSameTime() {
  constexpr int count = 512, rounds = 300;
  int* data = managed<int>(count);
  std::thread launches([&] {
    for (int round = 0; round < rounds; ++round) addToEven<<<1, 256>>>(data, count, 1);
    CHECK(cudaStreamSynchronize(nullptr));
  });
  for (int round = 0; round < rounds; ++round)
    for (int i = 1; i < count; i += 2) ++*const_cast<volatile int*>(data + i);
  launches.join();
  bool ok = true;
  for (int i = 0; i < count && ok; ++i) ok &= EXPECT(data[i] == rounds);
  return ok;
}

// `isChecked`: by the functions that check the buffer size (-D_FORTIFY_SOURCE), which replace the others in calls by name.
bool isReadAndWrittenByTheSystem(bool isChecked) {
  ssize_t (*volatile plainRead)(int, void*, size_t) = read;
  size_t (*volatile plainFread)(void*, size_t, size_t, std::FILE*) = std::fread;
  constexpr size_t bytes = 40 * 1000;
  char *in = managed<char>(bytes), *out = managed<char>(bytes);
  for (size_t i = 0; i < bytes; ++i) in[i] = static_cast<char>(i % 100);
  addToEven<<<1, 1>>>(reinterpret_cast<int*>(out), 2, 1);  // moves the pages to the device
  synchronize();
  int ends[2];
  bool ok = EXPECT(pipe(ends) == 0) & EXPECT(write(ends[1], in, bytes) == static_cast<ssize_t>(bytes)) &
            EXPECT((isChecked ? read(ends[0], out, bytes) : plainRead(ends[0], out, bytes)) == static_cast<ssize_t>(bytes)) & EXPECT(std::memcmp(in, out, bytes) == 0);
  std::FILE* file = std::tmpfile();
  addToEven<<<1, 1>>>(reinterpret_cast<int*>(out), 2, 0);
  synchronize();
  ok &= EXPECT(std::fwrite(out, 1, bytes, file) == bytes);
  std::rewind(file);
  addToEven<<<1, 1>>>(reinterpret_cast<int*>(out), 2, 1);
  synchronize();
  ok &= EXPECT((isChecked ? std::fread(out, 1, bytes, file) : plainFread(out, 1, bytes, file)) == bytes) & EXPECT(std::memcmp(in, out, bytes) == 0);
  std::fclose(file);
  return ok;
}

// System calls that take vectors and addresses, each with pages that are on the device.
bool isMovedByOtherCalls() {
  constexpr size_t bytes = 20 * 1000;
  char *in = managed<char>(bytes), *out = managed<char>(bytes);
  for (size_t i = 0; i < bytes; ++i) in[i] = static_cast<char>(i % 101);
  int ends[2];
  bool ok = EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  std::FILE* file = std::tmpfile();
  const int place = fileno(file);
  const auto all = static_cast<ssize_t>(bytes);
  auto moved = [&](auto&& gives, auto&& takes) {
    addToEven<<<1, 1>>>(reinterpret_cast<int*>(out), 2, 1);
    synchronize();
    const bool isGiven = EXPECT(gives() == all);
    addToEven<<<1, 1>>>(reinterpret_cast<int*>(out), 2, 1);
    synchronize();
    return isGiven & EXPECT(takes() == all) & EXPECT(std::memcmp(in, out, bytes) == 0);
  };
  iovec from{in, bytes}, to{out, bytes};
  msghdr sent{}, received{};
  sent.msg_iov = &from;
  received.msg_iov = &to;
  sent.msg_iovlen = received.msg_iovlen = 1;
  ok &= moved([&] { return sendto(ends[0], in, bytes, 0, nullptr, 0); },
              [&] { return recvfrom(ends[1], out, bytes, MSG_WAITALL, nullptr, nullptr); });
  ok &= moved([&] { return sendmsg(ends[0], &sent, 0); }, [&] { return recvmsg(ends[1], &received, MSG_WAITALL); });
  ok &= moved([&] { return pwritev(place, &from, 1, 100); }, [&] { return preadv(place, &to, 1, 100); });
  ok &= moved([&] { return pwritev2(place, &from, 1, 300, 0); }, [&] { return preadv2(place, &to, 1, 300, 0); });
  for (int end : ends) close(end);
  std::fclose(file);
  return ok;
}

// Other threads repeatedly move all pages to the device while the C library and the kernel transfer a file's bytes.
bool isMovedBesideLaunches() {
  constexpr size_t bytes = 1 << 20;
  char* data = managed<char>(bytes);
  int* theirs = managed<int>(64);
  std::memset(data, 7, bytes);
  std::atomic<bool> ends{false};
  std::vector<std::thread> launches;
  for (int i = 0; i < 4; ++i)
    launches.emplace_back([&] {
      while (!ends) {
        addToEven<<<1, 1>>>(theirs, 2, 1);
        CHECK(cudaStreamSynchronize(nullptr));
      }
    });
  bool ok = true;
  for (int round = 0; round < 5 && ok; ++round) {
    std::FILE* file = std::tmpfile();
    ok &= EXPECT(std::fwrite(data, 4096, bytes / 4096, file) == bytes / 4096) & EXPECT(std::ferror(file) == 0);
    std::rewind(file);
    ok &= EXPECT(std::fread(data, 4096, bytes / 4096, file) == bytes / 4096) & EXPECT(std::ferror(file) == 0);
    constexpr size_t piece = 64 << 10;
    iovec halves[] = {{data, piece / 2}, {data + bytes / 2, piece / 2}};
    ok &= EXPECT(pwritev(fileno(file), halves, 2, 0) > 0) & EXPECT(preadv(fileno(file), halves, 2, 0) > 0) &
          EXPECT(pwrite(fileno(file), data, piece, 0) > 0) & EXPECT(pread(fileno(file), data, piece, 0) > 0);
    std::fclose(file);
  }
  ends = true;
  for (std::thread& thread : launches) thread.join();
  for (size_t i = 0; i < bytes && ok; i += 4096) ok &= EXPECT(data[i] == 7);
  CHECK(cudaFree(data));
  return ok;
}

bool holdsParameters() {
  auto* request = managed<Request>(1);
  int* data = managed<int>(100);
  *request = {data, 100, 5};
  void* parameters[] = {request};
  for (int round = 0; round < 2; ++round)  // in the second round the pages are on the device
    CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(serve), 1, 1, parameters, 0, nullptr));
  synchronize();
  return EXPECT(data[99] == 104);
}

bool isDescribed() {
  int* data = managed<int>(10);
  cudaPointerAttributes attributes{};
  CHECK(cudaPointerGetAttributes(&attributes, data + 3));
  bool ok = EXPECT(attributes.type == cudaMemoryTypeManaged) & EXPECT(attributes.hostPointer == data + 3) &
            EXPECT(attributes.devicePointer == data + 3);
  CHECK(cudaFree(data));
  return ok;
}

bool keepsAdvice() {
  constexpr size_t bytes = 1 << 20, half = bytes / 2;
  char* data = managed<char>(bytes);
  const cudaMemLocation host{cudaMemLocationTypeHost, 0}, device{cudaMemLocationTypeDevice, 0};
  int value = 0, accessors[3] = {};
  auto ask = [&](cudaMemRangeAttribute attribute, size_t of) {
    CHECK(cudaMemRangeGetAttribute(&value, sizeof value, attribute, data, of));
    return value;
  };
  bool ok = EXPECT(ask(cudaMemRangeAttributeReadMostly, bytes) == 0) &
            EXPECT(ask(cudaMemRangeAttributePreferredLocation, bytes) == cudaInvalidDeviceId);
  CHECK(cudaMemAdvise(data, half, cudaMemAdviseSetReadMostly, device));
  CHECK(cudaMemAdvise(data, bytes, cudaMemAdviseSetPreferredLocation, host));
  CHECK(cudaMemAdvise(data, bytes, cudaMemAdviseSetAccessedBy, device));
  ok &= EXPECT(ask(cudaMemRangeAttributeReadMostly, half) == 1) & EXPECT(ask(cudaMemRangeAttributeReadMostly, bytes) == 0) &
        EXPECT(ask(cudaMemRangeAttributePreferredLocation, bytes) == cudaCpuDeviceId);
  CHECK(cudaMemRangeGetAttribute(accessors, sizeof accessors, cudaMemRangeAttributeAccessedBy, data, bytes));
  ok &= EXPECT(accessors[0] == 0) & EXPECT(accessors[1] == cudaInvalidDeviceId);
  std::memset(data, 5, bytes);
  CHECK(cudaMemPrefetchAsync(data, bytes, device, 0, nullptr));
  ok &= EXPECT(ask(cudaMemRangeAttributeLastPrefetchLocation, bytes) == 0);
  CHECK(cudaMemPrefetchAsync(data, bytes, host, 0, nullptr));
  synchronize();
  ok &= EXPECT(data[0] == 5) & EXPECT(data[bytes - 1] == 5) &
        EXPECT(ask(cudaMemRangeAttributeLastPrefetchLocation, bytes) == cudaCpuDeviceId);
  int local = 0;
  ok &= EXPECT(cudaMemAdvise(&local, 4, cudaMemAdviseSetReadMostly, device) == cudaErrorInvalidValue) &
        EXPECT(cudaMemPrefetchAsync(data, bytes + 1, device, 0, nullptr) == cudaErrorInvalidValue) &
        EXPECT(cudaMemPrefetchAsync(data, bytes, {cudaMemLocationTypeDevice, 99}, 0, nullptr) == cudaErrorInvalidDevice);
  cudaGetLastError();
  CHECK(cudaFree(data));
  return ok;
}

sigjmp_buf afterFault;

// A fault in the program's own memory goes to the program's handler.
bool leavesOtherFaultsAlone() {
  struct sigaction action {}, before {};
  action.sa_handler = [](int) { siglongjmp(afterFault, 1); };
  sigaction(SIGSEGV, &action, &before);
  bool caught = sigsetjmp(afterFault, 1) != 0;
  int* volatile nowhere = nullptr;
  if (!caught) *nowhere = 1;
  int* data = managed<int>(10);
  data[0] = 1;  // faults in managed memory are still served
  addToEven<<<1, 1>>>(data, 10, 1);
  synchronize();
  bool ok = EXPECT(caught) & EXPECT(data[0] == 2);
  sigaction(SIGSEGV, &before, nullptr);
  return ok;
}

}  // namespace

int main() {
  if (!isConcurrent()) return notHere;
  bool ok = sharesPages();
  ok &= isZeroWhereNobodyWrote();
  ok &= isCopiedAndFilled();
  ok &= isWrittenByHostFunctions();
  ok &= isUsedBesideLaunches();
  ok &= isSharedAtTheSameTime();
  ok &= isReadAndWrittenByTheSystem(false);
  ok &= isReadAndWrittenByTheSystem(true);
  ok &= isMovedByOtherCalls();
  ok &= isMovedBesideLaunches();
  ok &= holdsParameters();
  ok &= isDescribed();
  ok &= keepsAdvice();
  ok &= leavesOtherFaultsAlone();
  return verdict("managed-memory", ok);
}
