// More than the buffer of what kernels print holds: the oldest is lost, the rest is whole.
#include "captured-output.h"

__global__ void sayMuch(int lines) {
  for (int i = 0; i < lines; ++i) printf("line %06d\n", i);
}

int main() {
  constexpr int lines = 30'000;
  CapturedOutput output(CapturedOutput::Into::file);
  CHECK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 64 << 10));
  sayMuch<<<1, 1>>>(lines);
  CHECK(cudaDeviceSynchronize());
  const std::string text = output.finish();

  std::string all;
  char line[64];
  for (int i = 0; i < lines; ++i) {
    std::snprintf(line, sizeof line, "line %06d\n", i);
    all += line;
  }
  bool ok = EXPECT(text.size() > 1000) & EXPECT(text.size() < all.size());
  if (ok) ok = sameText("the last lines", text, all.substr(all.size() - text.size()));
  return verdict("print-overfull", ok);
}
