// Matrix products with elements smaller than a byte.
#include <bit>

#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

std::vector<uint32_t> randomWords(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint32_t> words(count);
  for (uint32_t& word : words) word = static_cast<uint32_t>(random());
  return words;
}

// Element `index` of a packed array with `bits` bits per element.
int elementOf(const std::vector<uint32_t>& words, size_t index, int bits, bool isSigned) {
  const uint32_t raw = words[index * bits / 32] >> (index * bits % 32) & ((1u << bits) - 1);
  return isSigned && raw >> (bits - 1) ? static_cast<int>(raw) - (1 << bits) : static_cast<int>(raw);
}

struct Multiplied {
  const char* operation;  // of wmma.mma and mma
  const char* type;
  int bits, depth;
};
constexpr Multiplied multipliedKinds[] = {
    {"", "s4", 4, 32}, {"", "u4", 4, 32}, {".xor.popc", "b1", 1, 128}, {".and.popc", "b1", 1, 128}};

// C[i][j] + sum over k of A[i][k] * B[k][j]; A is stored by rows, B by columns.
std::vector<int32_t> reference(const Multiplied& kind, int rows, const std::vector<uint32_t>& a,
                               const std::vector<uint32_t>& b, const std::vector<int32_t>& c) {
  std::vector<int32_t> d = c;
  const bool isSigned = kind.type[0] == 's', differ = std::string_view(kind.operation).starts_with(".xor");
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < 8; ++j)
      for (int k = 0; k < kind.depth; ++k) {
        const int x = elementOf(a, static_cast<size_t>(i * kind.depth + k), kind.bits, isSigned),
                  y = elementOf(b, static_cast<size_t>(j * kind.depth + k), kind.bits, isSigned);
        d[i * 8 + j] += differ ? x != y : x * y;
      }
  return d;
}

std::vector<int32_t> accumulators(size_t count) {
  std::vector<int32_t> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<int32_t>(i * 7919) - 100000;
  return values;
}

const std::string parameterList = ".param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d";
const std::string loadPointers =
    ".reg .b32 %r<12>; .reg .b64 %x<12>; ld.param.u64 %x0, [a]; ld.param.u64 %x1, [b]; ld.param.u64 %x2, [c]; "
    "ld.param.u64 %x3, [d];\n";

}  // namespace

TEST_CASE("wmma multiplies elements of four bits and of one") {
  for (const Multiplied& kind : multipliedKinds) {
    const std::string shape = "m8n8k" + std::to_string(kind.depth), type = kind.type;
    const std::string load = ".sync.aligned.", stride = std::to_string(kind.depth);
    std::string body =
        loadPointers + "wmma.load.a" + load + "row." + shape + ".global." + type + " {%r0}, [%x0], " + stride;
    body += ";\nwmma.load.b" + load + "col." + shape + ".global." + type + " {%r1}, [%x1], " + stride;
    body += ";\nwmma.load.c" + load + "row." + shape + ".global.s32 {%r2, %r3}, [%x2], 8;\nwmma.mma";
    body += kind.operation + load + "row.col." + shape + ".s32." + type + "." + type;
    body += ".s32 {%r4, %r5}, {%r0}, {%r1}, {%r2, %r3};\nwmma.store.d" + load + "row." + shape;
    body += ".global.s32 [%x3], {%r4, %r5}, 8;\nret;";
    CAPTURE(body);
    Device device(kernelText(parameterList, body));
    const auto a = randomWords(32, 1), b = randomWords(32, 2);
    const auto c = accumulators(64);
    const uint64_t d = device.upload(std::vector<int32_t>(64));
    device("k", {}, device.upload(a), device.upload(b), device.upload(c), d);
    CHECK_EQ(device.download<int32_t>(d, 64), reference(kind, 8, a, b, c));
  }
}

// PTX ISA, "Matrix Fragments for mma.m8n8k128": lane l holds rows l / 4 and l / 4 + 8 of A and column l / 4 of B, 32 bits each from k = 32
// (l % 4) on; and of C and D, in the same rows, columns 2 (l % 4) and the next one.
TEST_CASE("mma multiplies elements of one bit") {
  for (const Multiplied& kind : {multipliedKinds[2], multipliedKinds[3]}) {
    const std::string body = loadPointers + R"(
      mov.u32 %r0, %laneid; mul.wide.u32 %x4, %r0, 4; mul.wide.u32 %x5, %r0, 8;
      add.s64 %x0, %x0, %x4; add.s64 %x1, %x1, %x4; add.s64 %x2, %x2, %x5; add.s64 %x3, %x3, %x5;
      ld.global.u32 %r1, [%x0]; ld.global.u32 %r2, [%x0+128]; ld.global.u32 %r3, [%x1];
      ld.global.v2.u32 {%r4, %r5}, [%x2]; ld.global.v2.u32 {%r6, %r7}, [%x2+256];
      mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32)" +
                             std::string(kind.operation) +
                             R"( {%r8, %r9, %r10, %r11}, {%r1, %r2}, {%r3}, {%r4, %r5, %r6, %r7};
      st.global.v2.u32 [%x3], {%r8, %r9}; st.global.v2.u32 [%x3+256], {%r10, %r11}; ret;)";
    Device device(kernelText(parameterList, body));
    const auto a = randomWords(64, 3), b = randomWords(32, 4);
    const auto c = accumulators(128);
    const uint64_t d = device.upload(std::vector<int32_t>(128));
    device("k", {}, device.upload(a), device.upload(b), device.upload(c), d);
    CHECK_EQ(device.download<int32_t>(d, 128), reference(kind, 16, a, b, c));
  }
}

}  // namespace vgpu::emulator
