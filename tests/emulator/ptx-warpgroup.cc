// wgmma: products by four warps, with operands in shared memory given by descriptors.
#include "matrix-data.h"
#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

constexpr uint32_t rows = 64, threads = 128, sharedBytes = 96 * 1024;

// Layout of an operand in shared memory: rows of `span` bytes in groups of eight; 16: no swizzle.
struct Layout {
  uint32_t span = 16;
  bool acrossDepth = false;  // M or N is the major dimension, not K
};
constexpr uint64_t swizzleCode(uint32_t span) { return span == 16 ? 0 : span == 128 ? 1 : span == 64 ? 2 : 3; }

// A core matrix has eight lines of 16 bytes. Here core matrices follow each other along a line's direction first, then in the other.
struct Placed {
  uint32_t leading, stride;  // bytes
  uint32_t bytes;
};
Placed place(const Layout& layout, uint32_t lines, uint32_t lineBytes) {
  const uint32_t groups = lines / 8, chunks = (lineBytes + layout.span - 1) / layout.span, group = 8 * layout.span;
  // Without a swizzle, adjacent core matrices along the line are 128 bytes apart; otherwise whole groups of spans are.
  if (layout.span == 16) return {128, 128 * chunks, 128 * chunks * groups};
  return {group * groups, group, group * groups * chunks};
}
uint32_t byteOf(const Layout& layout, const Placed& placed, uint32_t line, uint32_t byte, uint32_t base) {
  const uint32_t address =
      base + byte / layout.span * placed.leading + line / 8 * placed.stride + line % 8 * layout.span + byte % layout.span;
  return address ^ (address >> 7 & (layout.span / 16 - 1)) << 4;
}

struct Operation {
  std::string_view a, b, d;
  uint32_t n = 8, k = 16;
  Layout layoutA, layoutB;
  bool aInRegisters = false;
  int signA = 1, signB = 1;
  bool scaleD = true;
  std::string_view suffix = "";  // of the opcode
  bool transposes() const { return a == "f16" || a == "bf16"; }
  bool isWhole() const { return d == "s32"; }
};

// The kernel's inputs, and the expected product.
struct Prepared {
  std::vector<uint8_t> shared = std::vector<uint8_t>(sharedBytes);
  std::vector<uint32_t> registers, accumulators;  // of all threads
  uint64_t descriptorA = 0, descriptorB = 0;
  Matrix product{};
};

uint64_t lay(const Layout& layout, std::string_view type, const Matrix& lines, uint32_t base, std::vector<uint8_t>& shared) {
  const ElementType& e = elementType(type);
  const Placed placed = place(layout, lines.rows, lines.columns * e.bits / 8);
  REQUIRE(base + placed.bytes <= sharedBytes);
  for (uint32_t line = 0; line < lines.rows; ++line)
    for (uint32_t i = 0; i < lines.columns; ++i) {
      const uint32_t at = byteOf(layout, placed, line, i * e.bits / 8, base);
      putBits(shared, size_t{at} * 8 + i * e.bits % 8, e.bits, bitsOf(e, lines.at(line, i)));
    }
  // Without a swizzle and with M or N as the major dimension, PTX exchanges the meanings of leading and stride.
  const bool exchanged = layout.acrossDepth && layout.span == 16;
  const uint64_t leading = exchanged ? placed.stride : placed.leading, stride = exchanged ? placed.leading : placed.stride;
  return base >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | swizzleCode(layout.span) << 62;
}

Matrix transposed(const Matrix& m) {
  Matrix t{m.columns, m.rows, std::vector<int>(m.values.size())};
  for (uint32_t i = 0; i < m.rows; ++i)
    for (uint32_t j = 0; j < m.columns; ++j) t.at(j, i) = m.at(i, j);
  return t;
}
Matrix scaled(Matrix m, int by) {
  for (int& value : m.values) value *= by;
  return m;
}

Prepared prepare(const Operation& op) {
  Prepared made;
  const ElementType &a = elementType(op.a), &b = elementType(op.b), &d = elementType(op.d);
  const Matrix left = randomMatrix(rows, op.k, a.least, a.most, 1), right = randomMatrix(op.k, op.n, b.least, b.most, 2);
  const Matrix sums = randomMatrix(rows, op.n, -20, 20, 3);
  const Matrix linesB = op.layoutB.acrossDepth ? right : transposed(right);
  made.descriptorB = lay(op.layoutB, op.b, linesB, 32768, made.shared);
  if (!op.aInRegisters)
    made.descriptorA = lay(op.layoutA, op.a, op.layoutA.acrossDepth ? transposed(left) : left, 0, made.shared);
  for (uint32_t t = 0; t < threads && op.aInRegisters; ++t) {
    std::vector<uint8_t> bytes(16 * op.k * a.bits / 32 / 8);
    for (uint32_t i = 0; i < 16 * op.k / 32; ++i) {
      const auto [row, column] = fragmentOfA(t % 32, i, a.bits);
      putBits(bytes, size_t{i} * a.bits, a.bits, bitsOf(a, left.at(t / 32 * 16 + row, column)));
    }
    made.registers.resize(made.registers.size() + bytes.size() / 4);
    std::memcpy(&made.registers[made.registers.size() - bytes.size() / 4], bytes.data(), bytes.size());
  }
  for (uint32_t t = 0; t < threads; ++t) {
    std::vector<uint8_t> bytes(op.n / 2 * d.bits / 8);
    for (uint32_t i = 0; i < op.n / 2; ++i) {
      const auto [row, column] = fragmentOfD(t % 32, i);
      putBits(bytes, size_t{i} * d.bits, d.bits, bitsOf(d, sums.at(t / 32 * 16 + row, column)));
    }
    made.accumulators.resize(made.accumulators.size() + bytes.size() / 4);
    std::memcpy(&made.accumulators[made.accumulators.size() - bytes.size() / 4], bytes.data(), bytes.size());
  }
  made.product = multiply(scaled(left, op.signA), scaled(right, op.signB), op.scaleD ? sums : scaled(sums, 0));
  return made;
}

// The instruction, with %da and %db for descriptors, %a… and %d… for registers and %p0 for scale-d.
std::string instruction(const Operation& op) {
  const uint32_t aWords = 16 * op.k * elementType(op.a).bits / 32 / 32, dWords = op.n / 2 * elementType(op.d).bits / 32;
  std::string text = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(op.n) + "k" + std::to_string(op.k);
  for (const std::string_view part : {op.d, op.a, op.b}) text += "." + std::string(part);
  text += op.suffix;
  text += " " + listOf("%d", dWords);
  text += op.aInRegisters ? ", " + listOf("%a", aWords) : ", %da";
  text += ", %db, %p0";
  if (!op.isWhole()) text += ", " + std::to_string(op.signA) + ", " + std::to_string(op.signB);
  if (op.transposes() && !op.aInRegisters) text += op.layoutA.acrossDepth ? ", 1" : ", 0";
  if (op.transposes()) text += op.layoutB.acrossDepth ? ", 1" : ", 0";
  return text + ";\n";
}

constexpr const char* parameterList =
    ".param .u64 image, .param .u64 fragments, .param .u64 sums, .param .u64 da, .param .u64 db, .param .u32 scale";

std::string body(const Operation& op, const std::string& product) {
  const uint32_t aWords = op.aInRegisters ? 16 * op.k * elementType(op.a).bits / 32 / 32 : 0,
                 dWords = op.n / 2 * elementType(op.d).bits / 32;
  std::string text = R"(
    .reg .pred %p<4>; .reg .b32 %r<8>, %a<8>, %d<128>; .reg .b64 %x<8>, %da, %db; .shared .align 1024 .b8 s[)" +
                     std::to_string(sharedBytes) + R"(];
    mov.u32 %r0, %tid.x; ld.param.u64 %x0, [image]; ld.param.u64 %x1, [fragments]; ld.param.u64 %x2, [sums];
    ld.param.u64 %da, [da]; ld.param.u64 %db, [db]; ld.param.u32 %r7, [scale]; setp.ne.u32 %p0, %r7, 0;
    mov.u32 %r2, s; cvt.u64.u32 %x5, %r2; shr.u64 %x5, %x5, 4; add.u64 %da, %da, %x5; add.u64 %db, %db, %x5;
    shl.b32 %r1, %r0, 4;
  FILL:
    cvt.u64.u32 %x3, %r1; add.u64 %x3, %x0, %x3; ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%x3]; add.u32 %r7, %r2, %r1;
    st.shared.v4.u32 [%r7], {%r3, %r4, %r5, %r6}; add.u32 %r1, %r1, 2048; setp.lt.u32 %p1, %r1, )" +
                     std::to_string(sharedBytes) + "; @%p1 bra FILL; bar.sync 0;\n";
  text += "mul.wide.u32 %x4, %r0, " + std::to_string(aWords * 4) + "; add.u64 %x1, %x1, %x4;\n";
  text += "mul.wide.u32 %x4, %r0, " + std::to_string(dWords * 4) + "; add.u64 %x2, %x2, %x4;\n";
  for (uint32_t i = 0; i < aWords; ++i)
    text += "ld.global.u32 %a" + std::to_string(i) + ", [%x1+" + std::to_string(4 * i) + "];\n";
  for (uint32_t i = 0; i < dWords; ++i)
    text += "ld.global.u32 %d" + std::to_string(i) + ", [%x2+" + std::to_string(4 * i) + "];\n";
  text += "wgmma.fence.sync.aligned;\n" + product + "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  for (uint32_t i = 0; i < dWords; ++i)
    text += "st.global.u32 [%x2+" + std::to_string(4 * i) + "], %d" + std::to_string(i) + ";\n";
  return text + "ret;";
}

std::optional<Fault> execute(const Operation& op, const std::string& product, const Prepared& made, std::vector<uint32_t>& result,
                             std::array<uint32_t, 3> block = {threads, 1, 1}) {
  Device device(kernelText(parameterList, body(op, product)));
  device.launch.maxInstructions = 10'000'000;
  const uint64_t sums = device.upload(made.accumulators);
  auto fault = device.tryLaunch("k", {{1, 1, 1}, block}, device.upload(made.shared), device.upload(made.registers), sums,
                                made.descriptorA, made.descriptorB, uint32_t{op.scaleD});
  result = device.download<uint32_t>(sums, made.accumulators.size());
  return fault;
}

void check(const Operation& op) {
  CAPTURE(instruction(op));
  const Prepared made = prepare(op);
  const ElementType& d = elementType(op.d);
  std::vector<uint32_t> result;
  const auto fault = execute(op, instruction(op), made, result);
  if (fault) FAIL(fault->report);
  const uint32_t words = op.n / 2 * d.bits / 32;
  uint32_t wrong = 0;
  for (uint32_t t = 0; t < threads; ++t) {
    std::vector<uint8_t> bytes(words * 4);
    std::memcpy(bytes.data(), &result[size_t{t} * words], bytes.size());
    for (uint32_t i = 0; i < op.n / 2; ++i) {
      const auto [row, column] = fragmentOfD(t % 32, i);
      wrong += getBits(bytes, size_t{i} * d.bits, d.bits) != bitsOf(d, made.product.at(t / 32 * 16 + row, column));
    }
  }
  CHECK(wrong == 0);
}

struct Types {
  std::string_view a, b, d;
  uint32_t k;
  std::string_view suffix = "";
};
constexpr Types allTypes[] = {{"f16", "f16", "f32", 16},
                              {"f16", "f16", "f16", 16},
                              {"bf16", "bf16", "f32", 16},
                              {"tf32", "tf32", "f32", 8},
                              {"e4m3", "e4m3", "f32", 32},
                              {"e4m3", "e5m2", "f32", 32},
                              {"e5m2", "e4m3", "f16", 32},
                              {"e5m2", "e5m2", "f16", 32},
                              {"s8", "s8", "s32", 32},
                              {"s8", "u8", "s32", 32},
                              {"u8", "s8", "s32", 32},
                              {"u8", "u8", "s32", 32, ".satfinite"},
                              {"b1", "b1", "s32", 256, ".and.popc"}};

}  // namespace

TEST_CASE("wgmma multiplies every type of elements, with A in shared memory and in registers") {
  for (const Types& types : allTypes)
    for (const bool inRegisters : {false, true})
      for (const uint32_t n : {8u, 24u, 96u, 256u}) {
        Operation op{types.a, types.b, types.d, n, types.k};
        op.aInRegisters = inRegisters;
        op.suffix = types.suffix;
        check(op);
      }
}

TEST_CASE("operands of wgmma lie in shared memory without a swizzle, or with one of 32, 64 or 128 bytes") {
  for (const Types& types : {allTypes[0], allTypes[3], allTypes[4], allTypes[8]})
    for (const uint32_t spanA : {16u, 32u, 64u, 128u})
      for (const uint32_t spanB : {16u, 32u, 64u, 128u}) {
        Operation op{types.a, types.b, types.d, 40, types.k, {spanA}, {spanB}};
        if (op.isWhole()) op.n = 48;
        check(op);
      }
}

TEST_CASE("16-bit elements lie in shared memory along either dimension") {
  for (const Types& types : {allTypes[0], allTypes[2]})
    for (const uint32_t spanA : {16u, 32u, 64u, 128u})
      for (const uint32_t spanB : {16u, 32u, 64u, 128u})
        for (const bool acrossA : {false, true}) check({types.a, types.b, types.d, 64, 16, {spanA, acrossA}, {spanB, true}});
}

TEST_CASE("wgmma negates operands, and ignores the old accumulators if scale-d is false") {
  for (const int signA : {1, -1})
    for (const int signB : {1, -1})
      for (const bool scaleD : {false, true}) {
        Operation op{"f16", "f16", "f32", 16, 16};
        op.signA = signA;
        op.signB = signB;
        op.scaleD = scaleD;
        check(op);
      }
  Operation whole{"s8", "s8", "s32", 16, 32};
  whole.scaleD = false;
  check(whole);
}

TEST_CASE("wgmma reads shared memory when the last warp of the four arrives") {
  // The first three warps arrive before the last one writes B.
  const Operation op{"f16", "f16", "f32", 8, 16};
  Prepared made = prepare(op);
  const std::string late = R"(
    { .reg .pred %late; .reg .b32 %b<4>; .reg .b64 %y<2>;
    setp.lt.u32 %late, %r0, 96; @%late bra READY;
    mov.u32 %b3, 0;
  DELAY:
    add.u32 %b3, %b3, 1; setp.lt.u32 %late, %b3, 60000; @%late bra DELAY;
    and.b32 %b0, %r0, 31; shl.b32 %b0, %b0, 3; add.u32 %b0, %b0, 32768; add.u32 %b1, %r2, %b0;
    cvt.u64.u32 %y0, %b0; add.u64 %y0, %x0, %y0; ld.global.u64 %y1, [%y0]; st.shared.u64 [%b1], %y1;
  READY:
    }
  )";
  const std::string clear =
      "shl.b32 %r1, %r0, 4; add.u32 %r1, %r1, 32768; add.u32 %r7, %r2, %r1; mov.u32 %r3, 0; "
      "st.shared.v4.u32 [%r7], {%r3, %r3, %r3, %r3}; bar.sync 0;\n";
  std::vector<uint32_t> whole, delayed;
  REQUIRE_FALSE(execute(op, instruction(op), made, whole));
  REQUIRE_FALSE(execute(op, clear + late + instruction(op), made, delayed));
  CHECK(whole == delayed);
}

TEST_CASE("a warpgroup instruction that one of its warps does not execute is reported") {
  const Operation op{"f16", "f16", "f32", 8, 16};
  const Prepared made = prepare(op);
  std::vector<uint32_t> result;
  const auto missing = execute(op, "setp.ge.u32 %p2, %r0, 96; @%p2 ret;\n" + instruction(op), made, result);
  REQUIRE(missing);
  CHECK(missing->kind == Fault::Kind::divergentBarrier);
  const auto parted = execute(op, "setp.ge.u32 %p2, %r0, 100; @%p2 ret;\n" + instruction(op), made, result);
  REQUIRE(parted);
  CHECK(parted->kind == Fault::Kind::illegalInstruction);
  const auto different = execute(
      op, "setp.ge.u32 %p2, %r0, 96; @%p2 bra OTHER;\n" + instruction(op) + "bra.uni END;\nOTHER:\n" + instruction(op) + "END:\n",
      made, result);
  REQUIRE(different);
  CHECK(different->kind == Fault::Kind::illegalInstruction);
  const auto small = execute(op, instruction(op), made, result, {96, 1, 1});
  REQUIRE(small);
  CHECK(small->kind == Fault::Kind::illegalInstruction);
}

TEST_CASE("a descriptor that reaches beyond the block's shared memory is an illegal address") {
  const Operation op{"f16", "f16", "f32", 8, 16};
  Prepared made = prepare(op);
  made.descriptorB = (made.descriptorB & ~uint64_t{0x3fff}) | sharedBytes >> 4;
  std::vector<uint32_t> result;
  const auto fault = execute(op, instruction(op), made, result);
  REQUIRE(fault);
  CHECK(fault->kind == Fault::Kind::illegalAddress);
}

TEST_CASE("shapes and constants that wgmma does not support are refused") {
  const std::string d4 = "{%d0, %d1, %d2, %d3}", tail = ", %da, %db, %p0, 1, 1, 0, 0;\n",
                    prefix = "wgmma.mma_async.sync.aligned.";
  const std::string wrong[] = {
      prefix + "m64n12k16.f32.f16.f16 " + d4 + tail, prefix + "m64n8k8.f32.f16.f16 " + d4 + tail,
      prefix + "m64n8k16.f32.f16.bf16 " + d4 + tail, prefix + "m64n8k16.f16.bf16.bf16 " + d4 + tail,
      prefix + "m64n16k16.f32.f16.f16 " + d4 + tail, prefix + "m64n8k16.f32.f16.f16 " + d4 + ", %da, %db, %p0, 2, 1, 0, 0;\n",
      prefix + "m64n8k32.s32.s8.s8 " + d4 + tail,    prefix + "m64n8k256.s32.b1.b1 " + d4 + ", %da, %db, %p0;\n",
      "wgmma.wait_group.sync.aligned %r0;\n",        "setmaxnreg.dec.sync.aligned.u32 20;\n"};
  for (const std::string& text : wrong) {
    CAPTURE(text);
    Device device(kernelText(parameterList, body({"f16", "f16", "f32"}, text)));
    CHECK_THROWS(device.module->findKernel("k"));
  }
}

}  // namespace vgpu::emulator
