#include <array>
#include <random>

#include "caught-stderr.h"
#include "container-samples.h"
#include "driver-fixture.h"

using namespace vgpu::test;

namespace {

// A module whose only variable identifies it among several.
std::string marked(const char* variable) {
  return std::string(".version 8.0\n.target sm_75\n.address_size 64\n.visible .global .align 4 .u32 ") + variable +
         ";\n";
}

// The error log of loading an image, which must be refused.
std::string refusal(const std::string& image, CUresult expected = CUDA_ERROR_INVALID_IMAGE) {
  CUmodule module = nullptr;
  std::array<char, 512> log{};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  CHECK_EQ(nameOf(cuModuleLoadDataEx(&module, image.data(), 2, options, values)), nameOf(expected));
  return log.data();
}

bool has(CUmodule module, const char* variable) {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  return cuModuleGetGlobal(&address, &bytes, module, variable) == CUDA_SUCCESS;
}

CUmodule loaded(const std::string& image) {
  CUmodule module = nullptr;
  REQUIRE_CUDA(cuModuleLoadData(&module, image.data()));
  return module;
}

}  // namespace

TEST_CASE("PTX is found in a fatbinary, whatever its compression") {
  Device device;
  for (Packing packing : {Packing::plain, Packing::lz4, Packing::zstd}) {
    CAPTURE(static_cast<int>(packing));
    CUmodule module = loaded(fatbinary(member(1, 75, kernels, packing)));
    CUdeviceptr word = device.allocate(4);
    REQUIRE_CUDA(launch(function(module, "store"), nullptr, 1, word, 12u));
    CHECK_EQ(device.read(word), 12);
  }
}

TEST_CASE("the newest PTX that the device can run is chosen") {
  Device device;
  std::string members = member(2, 75,
                               "\x7f"
                               "ELF",
                               Packing::plain) +
                        member(1, 75, marked("old"), Packing::zstd) + member(1, 90, marked("best"), Packing::lz4) +
                        member(1, 80, marked("middle"), Packing::zstd) +
                        member(1, 100, marked("future"), Packing::zstd);
  CUmodule module = loaded(fatbinary(members));
  CHECK(has(module, "best"));
  CHECK_FALSE(has(module, "old"));
  CHECK_FALSE(has(module, "future"));
}

TEST_CASE("architecture-specific PTX is chosen only on its own architecture") {
  Device device;
  constexpr uint64_t architectureSpecific = 0x100000;
  CUmodule module = loaded(fatbinary(member(1, 90, marked("general"), Packing::zstd) +
                                     member(1, 90, marked("specific"), Packing::zstd, architectureSpecific)));
  CHECK(has(module, "specific"));
  module = loaded(fatbinary(member(1, 80, marked("other"), Packing::zstd, architectureSpecific) +
                            member(1, 75, marked("general"), Packing::zstd)));
  CHECK(has(module, "general"));
}

TEST_CASE("a fatbinary without PTX for the device is refused") {
  Device device;
  CUmodule module = nullptr;
  std::string machineCode = fatbinary(member(2, 90,
                                             "\x7f"
                                             "ELF",
                                             Packing::plain));
  CHECK_ANSWER(cuModuleLoadData(&module, machineCode.data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
  std::string future = fatbinary(member(1, 100, kernels, Packing::zstd));
  CHECK_ANSWER(cuModuleLoadData(&module, future.data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK_ANSWER(cuModuleLoadData(&module, fatbinary({}).data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

TEST_CASE("PTX of a newer compiler is used instead of machine code for the device, and refused without machine code") {
  Device device;
  std::string text = marked("newer");
  text.replace(text.find("8.0"), 3, "9.2");
  const std::string ptx = member(1, 75, text, Packing::zstd);
  auto code = [](uint32_t architecture) { return member(2, architecture, "\x7f" "ELF", Packing::plain); };
  CHECK(has(loaded(fatbinary(code(90) + ptx)), "newer"));
  CHECK(has(loaded(fatbinary(ptx + code(90))), "newer"));
  CHECK_EQ(refusal(fatbinary(ptx), CUDA_ERROR_UNSUPPORTED_PTX_VERSION), "the PTX has version 9.2, newer than 9.0");
  refusal(fatbinary(code(80) + code(100) + ptx), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  refusal(text, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
}

TEST_CASE("the error for a fatbinary that only has PTX for a later device says how to choose such a device") {
  Device device;
  std::string code = member(2, 90, "\x7f" "ELF", Packing::plain);
  std::string future = member(1, 120, kernels, Packing::zstd) + member(1, 100, kernels, Packing::zstd);
  CHECK_NE(refusal(fatbinary(code + future), CUDA_ERROR_NO_BINARY_FOR_GPU).find("VGPU_EMULATED=architecture=100."), std::string::npos);
}

TEST_CASE("a fatbinary is found through its wrapper") {
  Device device;
  std::string container = fatbinary(member(1, 75, kernels, Packing::zstd));
  struct {
    uint32_t magic = 0x466243b1, version = 1;
    const void* data;
    void* unused = nullptr;
  } wrapper{.data = container.data()};
  CUmodule module = nullptr;
  REQUIRE_CUDA(cuModuleLoadFatBinary(&module, &wrapper));
  CHECK_NE(function(module, "empty"), nullptr);
}

TEST_CASE("a damaged fatbinary is refused or read, without trusting its fields") {
  Device device;
  std::string whole = fatbinary(member(1, 75, kernels, Packing::zstd) + member(1, 80, kernels, Packing::lz4));
  std::mt19937 random(1);
  int refused = 0;
  const CaughtStderr hundredsOfReasons;
  for (int round = 0; round < 300; ++round) {
    std::string damaged = whole;
    // The container header's size field is left: it is the number of bytes that the driver may read.
    size_t at = 16 + random() % (damaged.size() - 16);
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    CUmodule module = nullptr;
    CUresult answer = cuModuleLoadData(&module, damaged.data());
    if (answer == CUDA_SUCCESS) {
      CHECK_CUDA(cuModuleUnload(module));
      continue;
    }
    ++refused;
    bool sensible = answer == CUDA_ERROR_INVALID_IMAGE || answer == CUDA_ERROR_NO_BINARY_FOR_GPU ||
                    answer == CUDA_ERROR_INVALID_PTX || answer == CUDA_ERROR_NOT_SUPPORTED ||
                    answer == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    CAPTURE(nameOf(answer));
    CHECK(sensible);
  }
  CHECK_GT(refused, 50);
}

TEST_CASE("impossible sizes are refused by name") {
  Device device;
  std::string good = fatbinary(member(1, 75, kernels, Packing::zstd));
  auto with = [&](size_t offset, uint64_t value, size_t bytes) {
    std::string bad = good;
    std::memcpy(bad.data() + offset, &value, bytes);
    return bad;
  };
  CHECK_NE(refusal(with(16 + 4, 1 << 30, 4)).find("header size"), std::string::npos);
  CHECK_NE(refusal(with(16 + 4, 0, 4)).find("header size"), std::string::npos);
  CHECK_NE(refusal(with(16 + 8, ~0ull, 8)).find("payload"), std::string::npos);
  CHECK_NE(refusal(with(16 + 16, 0xffffff, 4)).find("compressed size"), std::string::npos);
  CHECK_NE(refusal(with(16 + 56, 1ull << 60, 8)).find("decompressed size"), std::string::npos);
  CHECK_NE(refusal(with(16 + 56, 10, 8)).find("damaged"), std::string::npos);
  CHECK_NE(refusal(with(8, good.size() - 16 - 8, 8)).find("payload"), std::string::npos);
}
