// The entry that libFuzzer calls.
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vgpu::fuzz::accepts({data, size});
  return 0;
}
