// The log of calls that fail: what is dumped, what callbacks are told, and how far an iterator goes.
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

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
  return buffer[size] == 0 ? std::string(buffer.data(), size) : "without an end";
}

void failBySize() { cudaMemset(nullptr, 0, 4096), cudaGetLastError(); }
void failByDriver() {  // no driver knows such a symbol's place
  void* memory = nullptr;
  cudaMalloc(&memory, size_t{1} << 60), cudaGetLastError();
}
void failByHandle() { cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(0x1234560)), cudaGetLastError(); }

bool isDumped() {
  cudaLogIterator at = 0, end = 0;
  CHECK(cudaLogsCurrent(&at, 0));
  bool ok = EXPECT(dumped(&at).empty());
  failByHandle();
  CHECK(cudaLogsCurrent(&end, 0));
  ok &= EXPECT(end > at);
  const std::string first = dumped(&at);
  ok &= EXPECT(hasLine(first, "(CUDA_ERROR_INVALID_HANDLE) from cuStreamSynchronize")) & EXPECT(first.back() == '\n');
  ok &= EXPECT(at == end) & EXPECT(dumped(&at).empty());
  failByDriver();
  ok &= EXPECT(hasLine(dumped(&at), "(CUDA_ERROR_OUT_OF_MEMORY) from cuMemAlloc"));
  ok &= EXPECT(hasLine(dumped(nullptr), "cuStreamSynchronize"));  // all there are
  size_t size = 4;
  char small[4];
  cudaLogIterator all = 0;
  ok &= EXPECT_ERROR(cudaLogsDumpToMemory(&all, small, &size, 0), cudaErrorInvalidValue) & EXPECT(size == 0);
  ok &= EXPECT_ERROR(cudaLogsDumpToMemory(&all, small, &size, 1), cudaErrorInvalidValue);
  ok &= EXPECT_ERROR(cudaLogsCurrent(&all, 1), cudaErrorInvalidValue);
  return ok;
}

// The newest lines are kept, and it is said that others are missing.
bool isBounded() {
  cudaLogIterator begin = 0;
  CHECK(cudaLogsCurrent(&begin, 0));
  for (int i = 0; i < 1000; ++i) failByHandle();
  failBySize();
  cudaLogIterator at = begin;
  const std::string whole = dumped(&at);
  bool ok = EXPECT(whole.size() <= 26000) & EXPECT(whole.size() > 20000) & EXPECT(whole.find("missing") < 80);
  at = begin;
  const std::string part = dumped(&at, 1000);
  ok &= EXPECT(part.size() < 1000) & EXPECT(part.size() > 500) & EXPECT(part.find("missing") < 80);
  return ok & EXPECT(whole.substr(whole.size() - 200) == part.substr(part.size() - 200));
}

bool isInFile() {
  char path[] = "/tmp/call-log-XXXXXX";
  const int made = mkstemp(path);
  if (!EXPECT(made >= 0)) return false;
  close(made);
  cudaLogIterator at = 0;
  CHECK(cudaLogsCurrent(&at, 0));
  failByHandle();
  CHECK(cudaLogsDumpToFile(&at, path, 0));
  std::string text(4096, 0);
  std::FILE* file = std::fopen(path, "r");
  text.resize(std::fread(&text[0], 1, text.size(), file));
  std::fclose(file);
  unlink(path);
  return EXPECT(hasLine(text, "from cuStreamSynchronize")) &
         EXPECT_ERROR(cudaLogsDumpToFile(nullptr, "/nowhere/at/all", 0), cudaErrorInvalidValue);
}

bool isTold(Told& told, Told& other) {
  const size_t before = told.lines.size(), ofOther = other.lines.size();
  failByHandle();
  bool ok = EXPECT(told.lines.size() > before) & EXPECT(other.lines.size() - ofOther == told.lines.size() - before);
  ok &= EXPECT(hasLine(told.lines.back(), "from cuStreamSynchronize")) & EXPECT(told.isError);
  const size_t quiet = told.lines.size();
  CHECK(cudaStreamSynchronize(nullptr));
  return ok & EXPECT(told.lines.size() == quiet);
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  bool ok = isDumped() & isBounded() & isInFile();
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
  failByHandle();
  ok &= EXPECT(second.lines.size() == before) & EXPECT(hasLine(dumped(&at), "from cuStreamSynchronize"));
  ok &= EXPECT_ERROR(cudaLogsUnregisterCallback(two), cudaErrorInvalidValue);
  CHECK(cudaLogsUnregisterCallback(one));
  ok &= EXPECT_ERROR(cudaLogsRegisterCallback(nullptr, nullptr, nullptr), cudaErrorInvalidValue);
  return verdict("call-log", ok);
}
