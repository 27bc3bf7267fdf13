// Modules, events, streams and memory that are destroyed in a rapid sequence of launches, so that a worker may have folded several pieces
// of work into one graph: later work must use the objects that exist then, possibly at the same addresses.
#include <string>

#include "driver-entry.h"

namespace {

constexpr int launches = 40, rounds = 6;
constexpr size_t large = size_t{64} << 20;  // has a lease of its own

// addNumber: out[0] += number, a constant in the image.
std::string imageOf(int number) {
  return ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry addNumber(.param .u64 out) {\n"
         "  .reg .u64 %a;\n  .reg .u32 %v;\n"
         "  ld.param.u64 %a, [out];\n  cvta.to.global.u64 %a, %a;\n  ld.global.u32 %v, [%a];\n  add.u32 %v, %v, " +
         std::to_string(number) + ";\n  st.global.u32 [%a], %v;\n  ret;\n}\n";
}

struct Module {
  explicit Module(int number) {
    CALL(cuModuleLoadData, &handle, imageOf(number).c_str());
    CALL(cuModuleGetFunction, &addNumber, handle, "addNumber");
  }
  void launch(CUdeviceptr out, cudaStream_t stream) {
    void* parameters[] = {&out};
    CALL(cuLaunchKernel, addNumber, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  }
  CUmodule handle;
  CUfunction addNumber;
};

__global__ void add(uint32_t* out, uint32_t more) { *out += more; }

// For streams that do not wait for the default one.
void zero(uint32_t* out) {
  CHECK(cudaMemset(out, 0, sizeof *out));
  CHECK(cudaDeviceSynchronize());
}

// A module is unloaded behind launches of it, and the next module's launches look the same.
bool addByModules(cudaStream_t stream) {
  DeviceArray<uint32_t> out(1);
  zero(out);
  uint32_t wanted = 0;
  for (int number = 1; number <= rounds; ++number) {
    Module module(number);
    for (int i = 0; i < launches; ++i) module.launch(reinterpret_cast<CUdeviceptr>(static_cast<uint32_t*>(out)), stream);
    CALL(cuModuleUnload, module.handle);
    wanted += number * launches;
  }
  CHECK(cudaStreamSynchronize(stream));
  return same("by modules", out.download(), {wanted});
}

// Each event is destroyed behind its record; the next one may get its handle.
bool recordDestroyed(cudaStream_t stream) {
  DeviceArray<uint32_t> out(1);
  zero(out);
  bool ok = true;
  for (int round = 0; round < rounds; ++round) {
    cudaEvent_t first, last;
    CHECK(cudaEventCreate(&first));
    CHECK(cudaEventCreate(&last));
    CHECK(cudaEventRecord(first, stream));
    for (int i = 0; i < launches; ++i) add<<<1, 1, 0, stream>>>(out, 1);
    CHECK(cudaEventRecord(last, stream));
    if (round % 2 == 0) {
      float milliseconds = -1;
      CHECK(cudaEventSynchronize(last));
      CHECK(cudaEventElapsedTime(&milliseconds, first, last));
      ok &= EXPECT(milliseconds >= 0);
    }
    CHECK(cudaEventDestroy(first));
    CHECK(cudaEventDestroy(last));
  }
  CHECK(cudaStreamSynchronize(stream));
  return same("between events", out.download(), {rounds * launches}) && ok;
}

// Memory is freed behind copies and fills of it, and is allocated again.
bool copyFreed(cudaStream_t stream) {
  bool ok = true;
  for (int round = 0; round < rounds; ++round) {
    uint32_t *from, *to;
    std::vector<uint32_t> got(launches);
    CHECK(cudaMalloc(&from, large));
    CHECK(cudaMalloc(&to, large));
    for (int i = 0; i < launches; ++i) {
      CHECK(cudaMemsetAsync(from + i, round + i, sizeof(uint32_t), stream));
      CHECK(cudaMemcpyAsync(to + i, from + i, sizeof(uint32_t), cudaMemcpyDeviceToDevice, stream));
      add<<<1, 1, 0, stream>>>(to + i, 1);
    }
    CHECK(cudaMemcpyAsync(got.data(), to, launches * sizeof(uint32_t), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaFree(from));
    CHECK(cudaFree(to));
    for (int i = 0; i < launches; ++i) ok &= EXPECT(got[i] == static_cast<uint32_t>(round + i) * 0x01010101u + 1);
  }
  return ok;
}

// Waits for a record that closely follows others, and that comes behind any limit of pending work in a stream.
bool waitForRecords(cudaStream_t stream) {
  DeviceArray<uint32_t> out(1);
  zero(out);
  cudaEvent_t first, last;
  CHECK(cudaEventCreate(&first));
  CHECK(cudaEventCreate(&last));
  constexpr int waits = 60;
  for (int wait = 0; wait < waits; ++wait) {
    for (int i = 0; i < launches; ++i) {
      add<<<1, 1, 0, stream>>>(out, 1);
      if (i % 16 == 0) CHECK(cudaEventRecord(first, stream));
    }
    CHECK(cudaEventRecord(last, stream));
    CHECK(cudaEventSynchronize(last));
    if (!EXPECT_ERROR(cudaEventQuery(first), cudaSuccess)) return false;
  }
  CHECK(cudaEventDestroy(first));
  CHECK(cudaEventDestroy(last));
  return same("waited for", out.download(), {waits * launches});
}

// A stream is destroyed behind its work.
bool launchIntoDestroyed() {
  DeviceArray<uint32_t> out(1);
  zero(out);
  for (int round = 0; round < rounds; ++round) {
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    for (int i = 0; i < launches; ++i) add<<<1, 1, 0, stream>>>(out, 1);
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaDeviceSynchronize());
  }
  return same("into destroyed streams", out.download(), {rounds * launches});
}

}  // namespace

int main() {
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  bool ok = addByModules(stream) && recordDestroyed(stream) && copyFreed(stream) && launchIntoDestroyed() &&
            waitForRecords(stream);
  pausePoint();
  ok = ok && launchIntoDestroyed() && copyFreed(stream) && recordDestroyed(stream) && addByModules(stream);
  return verdict("run-lifetimes", ok);
}
