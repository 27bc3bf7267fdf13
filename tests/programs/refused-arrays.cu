// Arrays that a session does not have are refused by name, once each, and so is what only they need.
#include "program.h"
#include "in-session.h"

#include <functional>

namespace {

std::string printedBy(const std::function<void()>& body) {
  std::FILE* file = std::tmpfile();
  const int saved = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  body();
  dup2(saved, STDERR_FILENO);
  close(saved);
  std::rewind(file);
  char text[4096];
  const size_t bytes = std::fread(text, 1, sizeof text, file);
  std::fclose(file);
  return {text, bytes};
}

bool isRefused(const char* name, const cudaChannelFormatDesc& format, unsigned flags) {
  cudaArray_t array = nullptr;
  cudaMipmappedArray_t mipmap = nullptr;
  bool ok = true;
  const std::string printed = printedBy([&] {
    for (int i = 0; i < 2; ++i)
      ok &= EXPECT_ERROR(cudaMalloc3DArray(&array, &format, make_cudaExtent(256, 256, 0), flags), cudaErrorNotSupported);
    ok &= EXPECT_ERROR(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(256, 256, 0), 2, flags), cudaErrorNotSupported);
  });
  cudaGetLastError();
  const std::string wanted = "vgpu: " + std::string(name);
  const size_t first = printed.find(wanted);
  ok &= EXPECT(first != std::string::npos) & EXPECT(printed.find("not possible in a session") != std::string::npos);
  return ok & EXPECT(printed.find(wanted, first + 1) == std::string::npos);
}

bool tilesAreRefused() {
  int isSupported = 1;
  cudaArrayMemoryRequirements needed{};
  CHECK(cudaDeviceGetAttribute(&isSupported, cudaDevAttrSparseCudaArraySupported, 0));
  const auto format = cudaCreateChannelDesc<float>();
  cudaArray_t plain;
  CHECK(cudaMallocArray(&plain, &format, 64, 64));
  const bool ok = EXPECT(isSupported == 0) & EXPECT_ERROR(cudaArrayGetMemoryRequirements(&needed, plain, 0), cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(cudaFreeArray(plain));
  return ok;
}

}  // namespace

int main() {
  if (!inSession) return notHere;
  const auto format = cudaCreateChannelDesc<float>();
  bool ok = isRefused("a sparse array (", format, cudaArraySparse);
  ok &= isRefused("an array for depth or video, or without memory,", format, cudaArrayDeferredMapping);
  ok &= isRefused("an array of blocks or planes", cudaCreateChannelDesc<cudaChannelFormatKindUnsignedBlockCompressed1>(), 0);
  return verdict("refused-arrays", ok & tilesAreRefused());
}
