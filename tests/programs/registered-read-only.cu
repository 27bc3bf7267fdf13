// Memory that is registered as read-only for devices, also if the program itself cannot write it: copies and fills to it are refused, and
// the program continues.
#include <sys/mman.h>

#include <memory>

#include "in-session.h"
#include "program.h"

namespace {

constexpr size_t page = 4096, bytes = 1 << 20;

// An asynchronous call may return its error from the next call that waits.
cudaError_t orLater(cudaError_t error) {
  const cudaError_t later = cudaDeviceSynchronize();
  return error == cudaSuccess ? later : error;
}

class ReadOnly {
 public:
  // `writable`: number of bytes at the beginning that the program can write.
  ReadOnly(const char* what, size_t writable) : what(what), writable(writable) {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) std::perror("mmap"), std::exit(1);
    memory = static_cast<char*>(std::memset(mapped, 'm', bytes));
    if (writable < bytes) mprotect(memory + writable, bytes - writable, PROT_READ);
    CHECK(cudaHostRegister(memory, bytes, cudaHostRegisterReadOnly));
  }
  ReadOnly(const ReadOnly&) = delete;
  ReadOnly& operator=(const ReadOnly&) = delete;

  bool refusesWrites(const char* onDevice) {
    bool ok = true;
    for (size_t begin : {size_t(0), 2 * page + 8})
      for (size_t size : {size_t(4), page, bytes - begin}) ok &= refusesWrites(memory + begin, onDevice, size);
    CHECK(cudaDeviceSynchronize());
    return ok & isWhole();
  }
  bool isRead(char* onDevice) {
    std::vector<char> got(bytes);
    CHECK(cudaMemset(onDevice, 'n', bytes));
    CHECK(cudaMemcpy(onDevice, memory, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(got.data(), onDevice, bytes, cudaMemcpyDeviceToHost));
    return same(what, got, std::vector<char>(bytes, 'm'));
  }
  bool isWrittenAfterwards(const char* onDevice) {
    CHECK(cudaHostUnregister(memory));
    bool ok = isWhole();
    mprotect(memory, bytes, PROT_READ | PROT_WRITE);
    CHECK(cudaMemcpy(memory, onDevice, bytes, cudaMemcpyDeviceToHost));
    return ok & holds('o');
  }

 private:
  // A driver's results are only known for synchronous copies to memory that the program can write completely
  // (conformance/golden/registered.txt).
  bool refusesWrites(char* to, const char* from, size_t size) {
    if (!inSession && writable < bytes) return true;
    bool ok = EXPECT_ERROR(cudaMemcpy(to, from, size, cudaMemcpyDeviceToHost), cudaErrorInvalidValue) &
              EXPECT_ERROR(cudaMemcpy(to, from, size, cudaMemcpyDefault), cudaErrorInvalidValue);
    if (inSession)
      ok &= EXPECT_ERROR(orLater(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToHost)), cudaErrorInvalidValue) &
            EXPECT_ERROR(cudaMemset(to, 1, size), cudaErrorInvalidValue) &
            EXPECT_ERROR(orLater(cudaMemsetAsync(to, 1, size)), cudaErrorInvalidValue);
    cudaGetLastError();
    if (!ok) std::fprintf(stderr, "of %s, %zu bytes from %td on\n", what, size, to - memory);
    return ok;
  }
  bool holds(char each) const { return same(what, std::vector<char>(memory, memory + bytes), std::vector<char>(bytes, each)); }
  bool isWhole() const { return holds('m'); }

  const char* what;
  const size_t writable;
  char* memory;
};

}  // namespace

int main() {
  DeviceArray<char> onDevice(bytes);
  std::vector<std::unique_ptr<ReadOnly>> all;
  all.push_back(std::make_unique<ReadOnly>("memory that the program can write", bytes));
  all.push_back(std::make_unique<ReadOnly>("memory that it can only read", 0));
  // Whether a driver registers this memory is not known.
  if (inSession) all.push_back(std::make_unique<ReadOnly>("memory of which it can write a page", page));
  bool ok = true;
  auto refuseWrites = [&] {
    for (auto& each : all) ok &= each->isRead(onDevice);
    CHECK(cudaMemset(onDevice, 'o', bytes));
    for (auto& each : all) ok &= each->refusesWrites(onDevice);
  };
  refuseWrites();
  pausePoint();
  refuseWrites();
  for (auto& each : all) ok &= each->isWrittenAfterwards(onDevice);
  return verdict("registered-read-only", ok);
}
