// mma.m8n8k4 of halves: four products at once, each by eight threads, with factors in either element order.
#include "matrix-data.h"
#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

using Place = std::pair<uint32_t, uint32_t>;  // row, column

uint32_t line(uint32_t lane) { return lane % 4 + (lane < 16 ? 0 : 4); }
uint32_t half(uint32_t lane, uint32_t index) { return index + (lane < 16 ? 0 : 4); }
// PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point type"
Place placeInA(uint32_t lane, uint32_t index, bool byRows) {
  return byRows ? Place{line(lane), index} : Place{half(lane, index), lane % 4};
}
Place placeInB(uint32_t lane, uint32_t index, bool byRows) {
  return byRows ? Place{lane % 4, half(lane, index)} : Place{index, line(lane)};
}
Place placeInC(uint32_t lane, uint32_t index, bool isHalf) {
  if (isHalf) return {line(lane), index};
  return {(lane & 1) + (index & 2) + (lane < 16 ? 0 : 4), (index & 4) + (lane & 2) + (index & 1)};
}

struct Layout {
  bool rowsOfA, rowsOfB, halfC, halfD;
  std::string text() const {
    return std::string(rowsOfA ? ".row" : ".col") + (rowsOfB ? ".row" : ".col") + (halfD ? ".f16" : ".f32") + ".f16.f16" +
           (halfC ? ".f16" : ".f32");
  }
};

// Words 0 and 1 of each lane are A, 2 and 3 B, the others C or D; word w of lane l has index 32 w + l.
std::string quadKernel(const Layout& layout) {
  std::string body = ".reg .b32 %a<2>; .reg .b32 %b<2>; .reg .b32 %c<8>; .reg .b32 %d<8>; .reg .b32 %t; .reg .b64 %x<4>;\n"
                     "ld.param.u64 %x0, [in]; ld.param.u64 %x1, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %x2, %t, 4; add.u64 %x0, %x0, %x2;"
                     "add.u64 %x1, %x1, %x2;\n";
  const auto load = [&](const std::string& name, uint32_t word) {
    body += "ld.global.b32 " + name + ", [%x0+" + std::to_string(word * 128) + "];\n";
  };
  for (uint32_t i = 0; i < 2; ++i) load("%a" + std::to_string(i), i), load("%b" + std::to_string(i), 2 + i);
  for (uint32_t i = 0; i < 8; ++i) load("%c" + std::to_string(i), 4 + i);
  const uint32_t outs = layout.halfD ? 4 : 8;
  body += "mma.sync.aligned.m8n8k4" + layout.text() + " " + listOf("%d", outs) + ", " + listOf("%a", 2) + ", " + listOf("%b", 2) + ", " +
          listOf("%c", layout.halfC ? 4 : 8) + ";\n";
  for (uint32_t i = 0; i < outs; ++i) body += "st.global.b32 [%x1+" + std::to_string(i * 128) + "], %d" + std::to_string(i) + ";\n";
  return kernelText(".param .u64 in, .param .u64 out", body + "ret;");
}

void putElement(std::vector<uint32_t>& words, uint32_t first, uint32_t lane, uint32_t index, const ElementType& type, int value) {
  const uint32_t per = 32 / type.bits;
  words[(first + index / per) * 32 + lane] |= bitsOf(type, value) << index % per * type.bits;
}

}  // namespace

TEST_CASE("mma.m8n8k4 of halves multiplies four pairs of matrices, each by rows or by columns") {
  for (uint32_t number = 0; number < 16; ++number) {
    const Layout layout{(number & 1) == 0, (number & 2) == 0, (number & 4) == 0, (number & 8) == 0};
    if (layout.halfD && !layout.halfC) continue;
    CAPTURE(layout.text());
    const ElementType &factor = elementType("f16"), &typeC = elementType(layout.halfC ? "f16" : "f32"),
                      &typeD = elementType(layout.halfD ? "f16" : "f32");
    std::vector<uint32_t> words(12 * 32);
    std::vector<Matrix> products;
    for (uint32_t quad = 0; quad < 4; ++quad) {
      const Matrix a = randomMatrix(8, 4, -9, 9, 3 * quad + number), b = randomMatrix(4, 8, -9, 9, 3 * quad + number + 1),
                   c = randomMatrix(8, 8, -99, 99, 3 * quad + number + 2);
      products.push_back(multiply(a, b, c));
      for (const uint32_t group : {0u, 16u})
        for (uint32_t lane = group + 4 * quad; lane < group + 4 * quad + 4; ++lane) {
          for (uint32_t i = 0; i < 4; ++i) {
            const auto [row, column] = placeInA(lane, i, layout.rowsOfA);
            putElement(words, 0, lane, i, factor, a.at(row, column));
            const auto [rowB, columnB] = placeInB(lane, i, layout.rowsOfB);
            putElement(words, 2, lane, i, factor, b.at(rowB, columnB));
          }
          for (uint32_t i = 0; i < 8; ++i) {
            const auto [row, column] = placeInC(lane, i, layout.halfC);
            putElement(words, 4, lane, i, typeC, c.at(row, column));
          }
        }
    }
    Device device(quadKernel(layout));
    const uint64_t out = device.upload(std::vector<uint32_t>(8 * 32));
    device("k", {}, device.upload(words), out);
    const auto result = device.download<uint32_t>(out, 8 * 32);
    bool same = true;
    for (uint32_t lane = 0; lane < 32; ++lane)
      for (uint32_t i = 0; i < 8; ++i) {
        const auto [row, column] = placeInC(lane, i, layout.halfD);
        const uint32_t per = 32 / typeD.bits, word = result[i / per * 32 + lane];
        const uint32_t bits = layout.halfD ? word >> 16 * (i % 2) & 0xffff : word;
        same &= valueOf(typeD, bits) == products[lane % 16 / 4].at(row, column);
      }
    CHECK(same);
  }
}

TEST_CASE("mma.m8n8k4 of halves does not add floats to halves, and has fragments of its own size") {
  const auto decode = [](const std::string& text) { Device(text).module->findKernel("k"); };
  CHECK_THROWS_AS(decode(quadKernel({true, false, false, true})), PtxError);
  CHECK_THROWS_AS(decode(kernelText("", ".reg .b32 %r<8>; mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%r0, %r1}, {%r2, %r3}, "
                                        "{%r4, %r5}, {%r0, %r1};")),
                  PtxError);
}

}  // namespace vgpu::emulator
