// Whole-warp instructions for ptx-forms.h. Matrices hold small integers, so that sums give the same bits in any order, and only the
// fragments' layout is tested.
#include <bit>

#include "ptx-forms.h"

namespace vgpu::emulator {
namespace {

std::string registers(const char* prefix, int first, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text.append(i ? ", " : "").append(prefix).append(std::to_string(first + i));
  return text + "}";
}

WarpForm mma(const std::string& shape, const std::string& types, const std::string& inputs, int a, int b, int c,
             int d) {
  return {"mma.sync.aligned." + shape + ".row.col." + types + " " + registers("%o", 0, d) + ", " +
              registers("%r", 0, a) + ", " + registers("%r", a, b) + ", " + registers("%r", a + b, c) + ";",
          inputs};
}

WarpForm mmaDouble(const std::string& shape, int a, int b, int c) {
  return {"mma.sync.aligned." + shape + ".row.col.f64.f64.f64.f64 " + registers("%w", 0, c) + ", " +
              registers("%q", 0, a) + ", " + registers("%q", a, b) + ", " + registers("%q", a + b, c) + ";",
          "f64", true};
}

// Stores the input words to shared memory: `s` then holds 32 rows of 64 bytes.
const char* const fillShared =
    "shl.b32 %t1, %t0, 6; mov.u32 %t2, s; add.u32 %t1, %t1, %t2; st.shared.v4.b32 [%t1], {%r0, %r1, %r2, %r3}; "
    "st.shared.v4.b32 [%t1+16], {%r4, %r5, %r6, %r7};"
    " st.shared.v4.b32 [%t1+32], {%r8, %r9, %r10, %r11}; st.shared.v4.b32 [%t1+48], {%r12, %r13, %r14, %r15}; bar.sync "
    "0; ";

// Loads A and B from shared memory as fragments, multiplies them, stores the product to shared memory, and reads it back.
WarpForm wmma(const std::string& shape, const std::string& layoutA, const std::string& layoutB,
              const std::string& layoutD, const std::string& type, const std::string& accumulator,
              const std::string& multiply, int a, int b, int c, int strideA, int strideB, int strideD, int offsetB) {
  return {std::string(fillShared) + "wmma.load.a.sync.aligned." + layoutA + "." + shape + ".shared." + type + " " +
              registers("%a", 0, a) + ", [s], " + std::to_string(strideA) + "; wmma.load.b.sync.aligned." + layoutB +
              "." + shape + ".shared." + type + " " + registers("%b", 0, b) + ", [s+" + std::to_string(offsetB) +
              "], " + std::to_string(strideB) + "; wmma.load.c.sync.aligned.row." + shape + ".shared." + accumulator +
              " " + registers("%c", 0, c) + ", [s], " + std::to_string(strideD) + "; wmma.mma.sync.aligned." + layoutA +
              "." + layoutB + "." + shape + "." + multiply + " " + registers("%d", 0, c) + ", " +
              registers("%a", 0, a) + ", " + registers("%b", 0, b) + ", " + registers("%c", 0, c) +
              "; bar.sync 0; wmma.store.d.sync.aligned." + layoutD + "." + shape + ".shared." + accumulator + " [s], " +
              registers("%d", 0, c) + ", " + std::to_string(strideD) +
              "; bar.sync 0; ld.shared.v4.b32 {%o0, %o1, %o2, %o3}, [%t1]; ld.shared.v4.b32 {%o4, %o5, %o6, %o7}, "
              "[%t1+16];",
          type == "s8" || type == "u8" ? "b32" : type};
}

void matrices(std::vector<WarpForm>& list) {
  list.push_back(mma("m16n8k16", "f32.f16.f16.f32", "f16/6", 4, 2, 4, 4));
  list.push_back(mma("m16n8k16", "f16.f16.f16.f16", "f16", 4, 2, 2, 2));
  list.push_back(mma("m16n8k8", "f32.f16.f16.f32", "f16/3", 2, 1, 4, 4));
  list.push_back(mma("m16n8k8", "f16.f16.f16.f16", "f16", 2, 1, 2, 2));
  list.push_back(mma("m16n8k16", "f32.bf16.bf16.f32", "bf16/6", 4, 2, 4, 4));
  list.push_back(mma("m16n8k8", "f32.bf16.bf16.f32", "bf16/3", 2, 1, 4, 4));
  list.push_back(mma("m16n8k4", "f32.tf32.tf32.f32", "f32", 2, 1, 4, 4));
  list.push_back(mma("m16n8k8", "f32.tf32.tf32.f32", "f32", 4, 2, 4, 4));
  for (const std::string a : {"s8", "u8"})
    for (const std::string b : {"s8", "u8"}) {
      const std::string types = "s32." + a + "." + b + ".s32";
      list.push_back(mma("m8n8k16", types, "b32", 1, 1, 2, 2));
      list.push_back(mma("m16n8k16", types, "b32", 2, 1, 4, 4));
      list.push_back(mma("m16n8k32", types, "b32", 4, 2, 4, 4));
      list.push_back(mma("m16n8k32", "satfinite." + types, "b32", 4, 2, 4, 4));
    }
  for (const std::string t : {"s4", "u4"}) {
    const std::string types = "s32." + t + "." + t + ".s32";
    list.push_back(mma("m8n8k32", types, "b32", 1, 1, 2, 2));
    list.push_back(mma("m16n8k32", types, "b32", 2, 1, 4, 4));
    list.push_back(mma("m16n8k64", types, "b32", 4, 2, 4, 4));
  }
  list.push_back(mmaDouble("m8n8k4", 1, 1, 2));
  for (const std::string layoutA : {"row", "col"})
    for (const std::string layoutB : {"row", "col"}) {
      list.push_back(wmma("m16n16k16", layoutA, layoutB, "row", "f16", "f16", "f16.f16", 8, 8, 4, 16, 16, 16, 512));
      list.push_back(
          wmma("m16n16k16", layoutA, layoutB, "col", "s8", "s32", "s32.s8.s8.s32", 2, 2, 8, 16, 16, 16, 256));
    }
  list.push_back(wmma("m32n8k16", "row", "col", "row", "f16", "f16", "f16.f16", 8, 8, 4, 16, 16, 8, 1024));
  list.push_back(wmma("m8n32k16", "row", "row", "row", "f16", "f16", "f16.f16", 8, 8, 4, 16, 32, 32, 256));
}

void movements(std::vector<WarpForm>& list) {
  const std::string address = "shl.b32 %t3, %t0, 4; add.u32 %t3, %t3, %t2; ";
  for (const std::string trans : {"", ".trans"}) {
    list.push_back(
        {fillShared + address + "ldmatrix.sync.aligned.m8n8.x4" + trans + ".shared.b16 {%o0, %o1, %o2, %o3}, [%t3];",
         "b32"});
    list.push_back(
        {fillShared + address + "ldmatrix.sync.aligned.m8n8.x2" + trans + ".shared.b16 {%o0, %o1}, [%t3+16];", "b32"});
    list.push_back(
        {fillShared + address + "ldmatrix.sync.aligned.m8n8.x1" + trans + ".shared.b16 {%o0}, [%t3];", "b32"});
    list.push_back(
        {fillShared + address + "stmatrix.sync.aligned.m8n8.x4" + trans +
             ".shared.b16 [%t3], {%r0, %r1, %r2, %r3}; bar.sync 0; ld.shared.v4.b32 {%o0, %o1, %o2, %o3}, [%t1];",
         "b32"});
  }
  list.push_back({"movmatrix.sync.aligned.m8n8.trans.b16 %o0, %r0;", "b32"});
  for (const std::string mode : {"up", "down", "bfly", "idx"})
    for (const std::string clamp : {"0", "31", "0x1c1f", "0x1800", "0x101f"})
      list.push_back(
          {"shfl.sync." + mode + ".b32 %o0|%p0, %r0, %r1, " + clamp + ", -1; selp.u32 %o1, 1, 0, %p0;", "b32shift"});
  list.push_back(
      {"and.b32 %t1, %r0, 3; match.any.sync.b32 %o0, %t1, -1; setp.lt.s32 %p0, %r1, 0; vote.sync.ballot.b32 %o1, %p0, "
       "-1;",
       "b32"});
  for (const char* op : {"add.u32", "min.u32", "max.s32", "and.b32", "xor.b32"})
    list.push_back({"redux.sync." + std::string(op) + " %o0, %r0, -1;", "b32"});
}

uint64_t next(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  return z ^ (z >> 27);
}

// An integer from -4 to 4 as a float with `bits` explicit significand bits, in the upper bits of a word.
uint32_t smallFloat(uint64_t& state) {
  return std::bit_cast<uint32_t>(static_cast<float>(static_cast<int>(next(state) % 9) - 4));
}
uint32_t smallHalf(uint64_t& state) {
  static constexpr uint16_t edgeHalves[] = {0, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4200, 0xc200, 0x4400, 0xc400};
  return edgeHalves[next(state) % 9];
}

uint32_t word(const std::string& kind, int index, uint64_t& state) {
  // "f16/6": f16 in the first six words of a lane, f32 in the others.
  if (const size_t slash = kind.find('/'); slash != std::string::npos)
    return word(index % 16 < std::stoi(kind.substr(slash + 1)) ? kind.substr(0, slash) : "f32", index, state);
  if (kind == "f16") {
    const uint32_t low = smallHalf(state);
    return low | smallHalf(state) << 16;
  }
  if (kind == "bf16") {
    const uint32_t low = smallFloat(state) >> 16;
    return low | (smallFloat(state) & 0xffff0000);
  }
  if (kind == "f32") return smallFloat(state);
  if (kind == "f64") {
    // Two words are one double: of a small integer only the upper word is not zero.
    if (index % 2 == 0) return 0;
    return static_cast<uint32_t>(std::bit_cast<uint64_t>(static_cast<double>(static_cast<int>(next(state) % 9) - 4)) >>
                                 32);
  }
  if (kind == "b32shift") return static_cast<uint32_t>(next(state) % 40);
  return static_cast<uint32_t>(next(state));
}

}  // namespace

std::vector<WarpForm> allWarpForms() {
  std::vector<WarpForm> list;
  matrices(list);
  movements(list);
  return list;
}

std::string warpFormKernel(const WarpForm& form) {
  std::string text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n.shared "
      ".align 128 .b8 s[2048];\n"
      ".reg .pred %p<2>; .reg .b64 %x<4>; .reg .b32 %t<8>; .reg .b32 %r<16>; .reg .b32 %o<8>; .reg .b64 %q<8>; .reg "
      ".b64 %w<8>;\n"
      ".reg .b32 %a<8>; .reg .b32 %b<8>; .reg .b32 %c<8>; .reg .b32 %d<8>;\n"
      "mov.u32 %t0, %tid.x; ld.param.u64 %x0, [in]; ld.param.u64 %x1, [out]; mul.wide.u32 %x2, %t0, 64; add.s64 %x0, "
      "%x0, %x2; add.s64 %x1, %x1, %x2;\n";
  for (int i = 0; i < 16; ++i)
    text += "ld.global.b32 %r" + std::to_string(i) + ", [%x0+" + std::to_string(i * 4) + "];\n";
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i);
    text += "ld.global.b64 %q" + n + ", [%x0+" + std::to_string(i * 8) + "]; mov.b32 %o" + n + ", 0; mov.b64 %w" + n +
            ", 0;\n";
  }
  text += form.body + "\n";
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i), at = "[%x1+" + std::to_string(i * 8) + "], ";
    text += form.wide ? "st.global.b64 " + at + "%w" + n + ";\n" : "st.global.b32 " + at + "%o" + n + ";\n";
  }
  return text + "ret;\n}\n";
}

std::vector<uint32_t> warpFormInputs(const WarpForm& form) {
  uint64_t state = 0;
  for (const char c : form.body) state = state * 31 + static_cast<uint8_t>(c);
  std::vector<uint32_t> inputs(size_t{32} * 16);
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = word(form.inputs, static_cast<int>(i), state);
  return inputs;
}

}  // namespace vgpu::emulator
