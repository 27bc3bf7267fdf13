// The log of failed calls: where it begins and ends, dumps, and callbacks. Its lines, which contain times, are not printed.
#include "conformance.h"

namespace {

int told = 0;
void CUDART_CB count(void* data, cudaLogLevel, char*, size_t) { ++*static_cast<int*>(data); }
void fail() {
  void* memory = nullptr;
  cudaMalloc(&memory, size_t{1} << 60), cudaGetLastError();
}

}  // namespace

SECTION(iterators) {
  CHECK(cudaFree(nullptr));
  cudaLogIterator begin = 0, end = 0;
  SAY(cudaLogsCurrent(&begin, 0));
  SAY(cudaLogsCurrent(&end, 0));
  VALUE(begin == end);
  fail();
  SAY(cudaLogsCurrent(&end, 0));
  VALUE(end > begin);
}

SECTION(memory) {
  CHECK(cudaFree(nullptr));
  cudaLogIterator begin = 0, end = 0;
  static char lines[32 * 1024];
  CHECK(cudaLogsCurrent(&begin, 0));
  fail();
  CHECK(cudaLogsCurrent(&end, 0));
  size_t size = sizeof lines;
  SAY(cudaLogsDumpToMemory(&begin, lines, &size, 0));
  VALUE(size > 0);
  VALUE(begin == end);
  VALUE(std::strstr(lines, "OUT_OF_MEMORY") != nullptr);
  size = sizeof lines;
  SAY(cudaLogsDumpToMemory(nullptr, lines, &size, 0));
  VALUE(size > 0);
  SAY(cudaLogsDumpToMemory(&begin, lines, &size, 1));
}

SECTION(files) {
  CHECK(cudaFree(nullptr));
  cudaLogIterator begin = 0;
  CHECK(cudaLogsCurrent(&begin, 0));
  fail();
  char path[] = "/tmp/logs-XXXXXX";
  const int file = mkstemp(path);
  SAY(cudaLogsDumpToFile(&begin, path, 1));
  VALUE(lseek(file, 0, SEEK_END) > 0);
  SAY(cudaLogsDumpToFile(&begin, path, 0));
  VALUE(lseek(file, 0, SEEK_END) > 0);
  SAY(cudaLogsDumpToFile(nullptr, path, 0));
  const auto all = lseek(file, 0, SEEK_END);
  SAY(cudaLogsDumpToFile(nullptr, path, 0));
  VALUE(lseek(file, 0, SEEK_END) == all);
  unlink(path);
  SAY(cudaLogsDumpToFile(&begin, "/nowhere/at/all", 0));
}

SECTION(listeners) {
  CHECK(cudaFree(nullptr));
  cudaLogsCallbackHandle first, second;
  int toldOther = 0;
  SAY(cudaLogsRegisterCallback(count, &told, &first));
  SAY(cudaLogsRegisterCallback(count, &toldOther, &second));
  fail();
  VALUE(told > 0);
  VALUE(toldOther == told);
  const int before = told;
  SAY(cudaLogsUnregisterCallback(second));
  fail();
  VALUE(told > before);
  VALUE(toldOther == before);
  SAY(cudaLogsUnregisterCallback(first));
  SAY(cudaLogsRegisterCallback(nullptr, nullptr, &first));
}
