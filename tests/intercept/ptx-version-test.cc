// PTX text of a compiler that is newer than the driver.
#include "intercept/runtime/ptx-version.h"

#include <cuda.h>
#include <doctest/doctest.h>

#include <string>

namespace {

std::string lowered(std::string text) {
  vgpu::runtime::lowerPtxVersion(text);
  return text;
}

}  // namespace

TEST_CASE("text of a newer PTX version gets the driver's version, in the same number of bytes, and other text is unchanged") {
  static_assert(CUDA_VERSION / 1000 == 13);
  const std::string own = "9." + std::to_string(CUDA_VERSION % 1000 / 10);
  CHECK(lowered("// by a compiler\n.version 9.9\n.target sm_90\n") == "// by a compiler\n.version " + own + "\n.target sm_90\n");
  CHECK(lowered(".version\t10.12\n.target sm_90") == ".version\t" + own + "  \n.target sm_90");
  CHECK(lowered(".version 10.0") == ".version " + own + " ");
  for (const std::string& same : {".version " + own + "\n", std::string(".version 8.7\n"), std::string(".version 10"),
                                  std::string(".version"), std::string(".version "), std::string("nothing of it"), std::string()})
    CHECK(lowered(same) == same);
}
