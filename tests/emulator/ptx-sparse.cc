// mma with a sparse A, and the shapes and types of mma that were added with 8-bit floats.
#include "matrix-data.h"
#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

// The shape and types of a product; chunks: groups of elements of which half are stored, in units of `unit`.
struct Product {
  std::string_view a, b, d;
  uint32_t k, chunk = 0, unit = 1;
};
constexpr Product sparseProducts[] = {
    {"f16", "f16", "f32", 16, 4},   {"f16", "f16", "f16", 32, 4},  {"bf16", "bf16", "f32", 32, 4}, {"tf32", "tf32", "f32", 8, 2},
    {"tf32", "tf32", "f32", 16, 2}, {"s8", "u8", "s32", 32, 4},    {"u8", "u8", "s32", 64, 4},     {"e4m3", "e5m2", "f32", 64, 4},
    {"s4", "s4", "s32", 64, 8, 2},  {"u4", "u4", "s32", 128, 8, 2}};
constexpr Product denseProducts[] = {
    {"e4m3", "e4m3", "f32", 32}, {"e5m2", "e4m3", "f16", 32}, {"e4m3", "e5m2", "f32", 16}, {"e5m2", "e5m2", "f16", 16}};

// A matrix in which half of each chunk is zero: the stored elements, and four bits of metadata for each chunk.
struct Sparse {
  Matrix whole, stored;
  std::vector<uint32_t> bits;  // for each row's chunks
};
Sparse makeSparse(const Product& p, const ElementType& type) {
  Sparse made{randomMatrix(16, p.k, type.least, type.most, 11), {16, p.k / 2, std::vector<int>(size_t{16} * p.k / 2)}, {}};
  std::mt19937 random(12);
  for (uint32_t row = 0; row < 16; ++row)
    for (uint32_t c = 0; c < p.k / p.chunk; ++c) {
      // Two of the chunk's four positions, in ascending order; with tf32 each of its two positions counts as two.
      uint32_t first = random() % 3, second = first + 1 + random() % (3 - first);
      if (p.chunk == 2) first = random() % 2 * 2, second = first + 1;
      made.bits.push_back(first | second << 2);
      uint32_t next = 0;
      for (uint32_t i = 0; i < p.chunk; ++i) {
        const uint32_t place = p.chunk == 2 ? i * 2 : i / p.unit;
        if (place == first || place == second)
          made.stored.at(row, c * p.chunk / 2 + next++) = made.whole.at(row, c * p.chunk + i);
        else
          made.whole.at(row, c * p.chunk + i) = 0;
      }
    }
  return made;
}

// PTX ISA, "Sparse matrix storage": a word of metadata has four chunks of its group's row, and above them those of the row eight rows
// below.
uint32_t metadataOf(const Product& p, const Sparse& matrix, uint32_t lane, uint32_t selector) {
  const uint32_t chunks = p.k / p.chunk, threads = chunks / 4;
  if (lane % 4 / threads != selector) return 0x44444444;  // belongs to another selector
  uint32_t word = 0;
  for (uint32_t half = 0; half < 2; ++half)
    for (uint32_t c = 0; c < 4; ++c)
      word |= matrix.bits[(lane / 4 + 8 * half) * chunks + lane % 4 % threads * 4 + c] << (16 * half + 4 * c);
  return word;
}

template <class F>
std::vector<uint32_t> fragments(uint32_t perLane, uint32_t bits, F valueAt) {
  std::vector<uint32_t> words;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    std::vector<uint8_t> bytes(size_t{perLane} * bits / 8);
    for (uint32_t i = 0; i < perLane; ++i) putBits(bytes, size_t{i} * bits, bits, valueAt(lane, i));
    words.resize(words.size() + bytes.size() / 4);
    std::memcpy(&words[words.size() - bytes.size() / 4], bytes.data(), bytes.size());
  }
  return words;
}

std::string loads(const char* prefix, const char* array, uint32_t count) {
  std::string text = std::string("ld.param.u64 %x0, [") + array + "]; mul.wide.u32 %x1, %t, " + std::to_string(count * 4) +
                     "; add.u64 %x0, %x0, %x1;\n";
  for (uint32_t i = 0; i < count; ++i)
    text += std::string("ld.global.u32 ") + prefix + std::to_string(i) + ", [%x0+" + std::to_string(4 * i) + "];\n";
  return text;
}

std::string opcode(const Product& p, bool sparse) {
  std::string text = sparse ? "mma.sp::ordered_metadata" : "mma";
  text += ".sync.aligned.m16n8k" + std::to_string(p.k) + ".row.col";
  for (const std::string_view part : {p.d, p.a, p.b, p.d}) text += "." + std::string(part);
  return text;
}

void check(const Product& p, uint32_t selector) {
  const ElementType &a = elementType(p.a), &b = elementType(p.b), &d = elementType(p.d);
  const bool sparse = p.chunk != 0;
  const Sparse left = sparse ? makeSparse(p, a) : Sparse{{}, randomMatrix(16, p.k, a.least, a.most, 11), {}};
  const Matrix right = randomMatrix(p.k, 8, b.least, b.most, 13), sums = randomMatrix(16, 8, -20, 20, 14);
  const uint32_t aWords = left.stored.columns * 16 * a.bits / 1024, bWords = p.k * 8 * b.bits / 1024, dWords = 4 * d.bits / 32;
  std::string body = ".reg .b32 %t, %a<8>, %b<8>, %d<4>, %e<1>; .reg .b64 %x<4>; mov.u32 %t, %tid.x;\n";
  body += loads("%a", "a", aWords) + loads("%b", "b", bWords) + loads("%e", "e", 1) + loads("%d", "d", dWords);
  body += opcode(p, sparse) + " " + listOf("%d", dWords) + ", " + listOf("%a", aWords) + ", " + listOf("%b", bWords) + ", " +
          listOf("%d", dWords);
  if (sparse) body += ", %e0, " + std::to_string(selector);
  body += ";\n";
  for (uint32_t i = 0; i < dWords; ++i)
    body += "st.global.u32 [%x0+" + std::to_string(4 * i) + "], %d" + std::to_string(i) + ";\n";
  CAPTURE(body);
  Device device(kernelText(".param .u64 a, .param .u64 b, .param .u64 e, .param .u64 d", body + "ret;"));
  const auto ofA = fragments(aWords * 32 / a.bits, a.bits, [&](uint32_t lane, uint32_t i) {
    const auto [row, column] = fragmentOfA(lane, i, a.bits);
    return bitsOf(a, left.stored.at(row, column));
  });
  const auto ofB = fragments(bWords * 32 / b.bits, b.bits, [&](uint32_t lane, uint32_t i) {
    const uint32_t per = 32 / b.bits;
    return bitsOf(b, right.at(i / per * 4 * per + lane % 4 * per + i % per, lane / 4));
  });
  const auto ofD = fragments(4, d.bits, [&](uint32_t lane, uint32_t i) {
    const auto [row, column] = fragmentOfD(lane, i);
    return bitsOf(d, sums.at(row, column));
  });
  const auto metadata =
      fragments(1, 32, [&](uint32_t lane, uint32_t) { return sparse ? metadataOf(p, left, lane, selector) : 0; });
  const Matrix product = multiply(sparse ? left.whole : left.stored, right, sums);
  const auto expected = fragments(4, d.bits, [&](uint32_t lane, uint32_t i) {
    const auto [row, column] = fragmentOfD(lane, i);
    return bitsOf(d, product.at(row, column));
  });
  const uint64_t out = device.upload(ofD);
  device("k", {}, device.upload(ofA), device.upload(ofB), device.upload(metadata), out);
  CHECK(device.download<uint32_t>(out, ofD.size()) == expected);
}

}  // namespace

TEST_CASE("mma multiplies a sparse A according to its metadata, with every selector") {
  for (const Product& p : sparseProducts)
    for (uint32_t selector = 0; selector < 16 / (p.k / p.chunk); ++selector) check(p, selector);
}

TEST_CASE("mma multiplies 8-bit floats of either format") {
  for (const Product& p : denseProducts) check(p, 0);
}

TEST_CASE("shapes and selectors that do not exist for a sparse A are refused") {
  const std::string start = ".reg .b32 %a<4>, %b<4>, %d<4>, %e; mma.sp.sync.aligned.", four = " {%d0, %d1, %d2, %d3}, ";
  const std::string wrong[] = {
      start + "m16n8k32.row.col.f32.f16.f16.f32" + four +
          "{%a0, %a1, %a2, %a3}, {%b0, %b1, %b2, %b3}, {%d0, %d1, %d2, %d3}, %e, 2;",
      start + "m16n8k32.row.col.f32.f16.f16.f32" + four + "{%a0, %a1}, {%b0, %b1, %b2, %b3}, {%d0, %d1, %d2, %d3}, %e, 0;",
      start + "m16n8k32.row.col.f32.f16.f16.f32" + four +
          "{%a0, %a1, %a2, %a3}, {%b0, %b1, %b2, %b3}, {%d0, %d1, %d2, %d3}, %e, %e;",
      start + "m16n8k64.row.col.f32.f16.f16.f32" + four +
          "{%a0, %a1, %a2, %a3}, {%b0, %b1, %b2, %b3}, {%d0, %d1, %d2, %d3}, %e, 0;"};
  for (const std::string& body : wrong) {
    CAPTURE(body);
    Device device(kernelText("", body + " ret;"));
    CHECK_THROWS(device.module->findKernel("k"));
  }
}

}  // namespace vgpu::emulator
