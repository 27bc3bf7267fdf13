// The log of failed calls: dumps, callbacks, and iterators.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "in-session.h"
#include "program.h"

namespace {

struct Told {
  std::vector<std::string> lines;
  bool isError = true;
};

void CUDART_CB tell(void* data, cudaLogLevel level, char* message, size_t length) {
  auto& told = *static_cast<Told*>(data);
  told.lines.emplace_back(message, length);
  told.isError &= level == cudaLogLevelError;
}

bool hasLine(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

std::string dumped(cudaLogIterator* from, size_t room = 30000) {
  std::vector<char> buffer(room, 'x');
  size_t size = buffer.size();
  CHECK(cudaLogsDumpToMemory(from, buffer.data(), &size, 0));
  if (size == 0 && !inSession) return "";  // a driver does not write the buffer in this case
  return buffer[size] == 0 ? std::string(buffer.data(), size) : "without an end";
}

void failBySize() { cudaMemset(nullptr, 0, 4096), cudaGetLastError(); }
void fail() {
  void* memory = nullptr;
  cudaMalloc(&memory, size_t{1} << 60), cudaGetLastError();
}
const char* const ofFail = "(CUDA_ERROR_OUT_OF_MEMORY) from cuMemAlloc";

bool isDumped() {
  cudaLogIterator at = 0, end = 0;
  CHECK(cudaLogsCurrent(&at, 0));
  bool ok = EXPECT(dumped(&at).empty());
  fail();
  CHECK(cudaLogsCurrent(&end, 0));
  ok &= EXPECT(end > at);
  const std::string first = dumped(&at);
  ok &= EXPECT(hasLine(first, ofFail)) & EXPECT(first.back() == '\n');
  ok &= EXPECT(at == end) & EXPECT(dumped(&at).empty());
  cudaFree(reinterpret_cast<void*>(0x10)), cudaGetLastError();
  ok &= EXPECT(hasLine(dumped(&at), "(CUDA_ERROR_INVALID_VALUE) from cuMemFree"));
  return ok & EXPECT(hasLine(dumped(nullptr), ofFail));  // all existing lines
}

// Uses at which a driver crashes or deviates from cuda.h: a null handle, flags, and a buffer shorter than a line (the driver overruns it).
bool isAsDocumented() {
  cudaLogIterator at = 0, all = 0;
  CHECK(cudaLogsCurrent(&at, 0));
  cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(0x1234560)), cudaGetLastError();
  bool ok = EXPECT(hasLine(dumped(&at), "(CUDA_ERROR_INVALID_HANDLE) from cuStreamSynchronize"));
  size_t size = 4;
  char small[4];
  ok &= EXPECT_ERROR(cudaLogsDumpToMemory(&all, small, &size, 0), cudaErrorInvalidValue) & EXPECT(size == 0);
  ok &= EXPECT_ERROR(cudaLogsDumpToMemory(&all, small, &size, 1), cudaErrorInvalidValue);
  return ok & EXPECT_ERROR(cudaLogsCurrent(&all, 1), cudaErrorInvalidValue);
}

// The first line says that earlier lines are missing.
bool saysMissing(const std::string& text) { return text.find("missing") < text.find('\n'); }

// The newest hundred lines are kept.
bool isBounded() {
  cudaLogIterator begin = 0;
  CHECK(cudaLogsCurrent(&begin, 0));
  for (int i = 0; i < 1000; ++i) fail();
  failBySize();
  cudaLogIterator at = begin;
  const std::string whole = dumped(&at);
  bool ok = EXPECT(std::count(whole.begin(), whole.end(), '\n') == 1 + 100) & EXPECT(saysMissing(whole));
  at = begin;
  const std::string part = dumped(&at, 1000);
  ok &= EXPECT(part.size() < 1000) & EXPECT(part.size() > 500) & EXPECT(saysMissing(part));
  return ok & EXPECT(whole.substr(whole.size() - 200) == part.substr(part.size() - 200));
}

bool isInFile() {
  char path[] = "/tmp/call-log-XXXXXX";
  const int made = mkstemp(path);
  if (!EXPECT(made >= 0)) return false;
  close(made);
  cudaLogIterator at = 0;
  CHECK(cudaLogsCurrent(&at, 0));
  fail();
  CHECK(cudaLogsDumpToFile(&at, path, 0));
  std::string text(4096, 0);
  std::FILE* file = std::fopen(path, "r");
  text.resize(std::fread(&text[0], 1, text.size(), file));
  std::fclose(file);
  unlink(path);
  return EXPECT(hasLine(text, ofFail)) &
         EXPECT_ERROR(cudaLogsDumpToFile(nullptr, "/nowhere/at/all", 0), cudaErrorInvalidValue);
}

bool isTold(Told& told, Told& other) {
  const size_t before = told.lines.size(), ofOther = other.lines.size();
  fail();
  bool ok = EXPECT(told.lines.size() > before) & EXPECT(other.lines.size() - ofOther == told.lines.size() - before);
  ok &= EXPECT(hasLine(told.lines.back(), ofFail)) & EXPECT(told.isError);
  const size_t quiet = told.lines.size();
  CHECK(cudaStreamSynchronize(nullptr));
  return ok & EXPECT(told.lines.size() == quiet);
}

struct Slow {
  std::atomic<bool> hasBegun{false}, hasEnded{false};
};
void CUDART_CB tellSlowly(void* data, cudaLogLevel, char*, size_t) {
  auto& slow = *static_cast<Slow*>(data);
  slow.hasBegun = true;
  usleep(50000);
  slow.hasEnded = true;
}

// After a callback is unregistered, its data may be freed. (A driver's behaviour is not documented.)
bool runsNoMoreWhenRemoved() {
  Slow slow;
  cudaLogsCallbackHandle listener;
  CHECK(cudaLogsRegisterCallback(tellSlowly, &slow, &listener));
  std::thread failing(fail);
  while (!slow.hasBegun) usleep(100);
  CHECK(cudaLogsUnregisterCallback(listener));
  const bool ok = EXPECT(slow.hasEnded);
  failing.join();
  return ok;
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  bool ok = isDumped() & isBounded() & isInFile();
  if (inSession) ok &= isAsDocumented() & runsNoMoreWhenRemoved();
  Told first, second;
  cudaLogsCallbackHandle one, two;
  CHECK(cudaLogsRegisterCallback(tell, &first, &one));
  CHECK(cudaLogsRegisterCallback(tell, &second, &two));
  ok &= isTold(first, second);
  pausePoint();
  ok &= isTold(first, second);
  cudaLogIterator at = 0;
  CHECK(cudaLogsCurrent(&at, 0));
  CHECK(cudaLogsUnregisterCallback(two));
  const size_t before = second.lines.size();
  fail();
  ok &= EXPECT(second.lines.size() == before) & EXPECT(hasLine(dumped(&at), ofFail));
  if (inSession) ok &= EXPECT_ERROR(cudaLogsUnregisterCallback(two), cudaErrorInvalidValue);  // a driver crashes
  CHECK(cudaLogsUnregisterCallback(one));
  ok &= EXPECT_ERROR(cudaLogsRegisterCallback(nullptr, nullptr, nullptr), cudaErrorInvalidValue);
  return verdict("call-log", ok);
}
