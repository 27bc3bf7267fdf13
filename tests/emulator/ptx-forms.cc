#include "ptx-forms.h"

#include <bit>
#include <span>

namespace vgpu::emulator {
namespace {

using Names = std::vector<std::string>;

const Names ints16{"u16", "s16"}, ints32{"u32", "s32"}, ints64{"u64", "s64"};

std::string bits(const std::string& type) {
  if (type == "pred") return type;
  if (type.ends_with("x2")) return "b32";
  const std::string digits = type.substr(type.find_first_of("0123456789"));
  return digits == "8" ? "b16" : std::string("b").append(digits);
}

class Forms {
 public:
  std::vector<Form> list;

  void add(const std::string& op, const std::string& result, const Names& operands) {
    std::string text = op + " D";
    for (size_t i = 0; i < operands.size(); ++i) text += std::string(", ") + static_cast<char>('A' + i);
    list.push_back({text, bits(result), operands});
  }
  void same(const std::string& op, const std::string& type, int operands) {
    add(op + "." + type, type, Names(static_cast<size_t>(operands), type));
  }
  void raw(const std::string& text, const std::string& result, const Names& operands) {
    list.push_back({text, bits(result), operands});
  }
};

void integers(Forms& forms) {
  for (const Names& types : {ints16, ints32, ints64})
    for (const std::string& t : types) {
      for (const char* op : {"add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"}) forms.same(op, t, 2);
      forms.same("mad.lo", t, 3);
      forms.same("mad.hi", t, 3);
      forms.same("sad", t, 3);
      const std::string b = std::string("b").append(t, 1);
      forms.add("shr." + t, t, {t, "shift"});
      for (const char* c : {"eq", "ne", "lt", "le", "gt", "ge"})
        forms.add("setp." + std::string(c) + "." + t, "pred", {t, t});
      if (t[0] == 's') {
        forms.same("neg", t, 1);
        forms.same("abs", t, 1);
      } else {
        for (const char* c : {"lo", "ls", "hi", "hs"}) forms.add("setp." + std::string(c) + "." + t, "pred", {t, t});
        for (const char* op : {"and", "or", "xor"}) forms.same(op, b, 2);
        forms.same("not", b, 1);
        forms.same("cnot", b, 1);
        forms.add("shl." + b, b, {b, "shift"});
      }
    }
  for (const std::string t : {"u16", "s16", "u32", "s32"}) {
    const std::string wide = t.substr(0, 1) + (t.ends_with("16") ? "32" : "64");
    forms.add("mul.wide." + t, wide, {t, t});
    forms.add("mad.wide." + t, wide, {t, t, wide});
  }
  for (const std::string& t : ints32)
    for (const char* op : {"mul24.lo", "mul24.hi"}) {
      forms.same(op, t, 2);
      forms.same(std::string("mad24") + std::string(op).substr(5), t, 3);
    }
  for (const char* op : {"add.sat.s32", "sub.sat.s32"}) forms.add(op, "s32", {"s32", "s32"});
  forms.add("mad.hi.sat.s32", "s32", {"s32", "s32", "s32"});
  for (const char* t : {"u32", "u64"}) {
    const std::string type = t, zero = type == "u32" ? "b32" : "b64";
    forms.raw("add.cc." + type + " D, A, B; addc." + type + " D, A, C", type, {type, type, type});
    forms.raw("sub.cc." + type + " D, A, B; subc." + type + " D, A, C", type, {type, type, type});
    forms.raw("sub.cc." + type + " D, A, B; addc." + type + " D, D, C", type, {type, type, type});
    forms.raw("add.cc." + type + " D, A, B; subc." + type + " D, D, C", type, {type, type, type});
    forms.raw("sub.cc." + type + " D, A, B; subc.cc." + type + " D, C, A; addc." + type + " D, D, D", type,
              {type, type, type});
    forms.raw("add.cc." + type + " D, A, B; addc.cc." + type + " D, A, C; addc." + type + " D, B, C", type,
              {type, type, type});
    forms.raw("sub.cc." + type + " D, A, B; subc.cc." + type + " D, C, B; subc." + type + " D, A, C", type,
              {type, type, type});
    forms.raw("mad.lo.cc." + type + " D, A, B, C; madc.hi." + type + " D, A, B, C", type, {type, type, type});
    forms.raw("mad.hi.cc." + type + " D, A, B, C; madc.lo.cc." + type + " D, A, B, C; addc." + type + " D, A, B", type,
              {type, type, type});
  }
  for (const std::string a : {"u32", "s32"})
    for (const std::string b : {"u32", "s32"}) {
      const std::string c = a == "u32" && b == "u32" ? "u32" : "s32";
      for (const char* op : {"dp4a.", "dp2a.lo.", "dp2a.hi."}) forms.add(op + a + "." + b, c, {"b32", "b32", c});
    }
}

void bitOperations(Forms& forms) {
  for (const std::string w : {"32", "64"}) {
    for (const char* op : {"popc", "clz"}) forms.add(std::string(op) + ".b" + w, "b32", {"b" + w});
    forms.same("brev", "b" + w, 1);
    for (const std::string s : {"u", "s"}) {
      forms.add("bfind." + s + w, "b32", {s + w});
      forms.add("bfind.shiftamt." + s + w, "b32", {s + w});
      forms.add("bfe." + s + w, s + w, {s + w, "field", "field"});
    }
    forms.raw("bfi.b" + w + " D, A, A, B, C", "b" + w, {"b" + w, "field", "field"});
    forms.raw("bfi.b" + w + " D, A, 5, B, C", "b" + w, {"b" + w, "field", "field"});
  }
  for (const char* d : {"l", "r"})
    for (const char* m : {"wrap", "clamp"})
      forms.add(std::string("shf.") + d + "." + m + ".b32", "b32", {"b32", "b32", "shift"});
  forms.add("prmt.b32", "b32", {"b32", "b32", "b32"});
  for (const char* m : {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"})
    forms.add(std::string("prmt.b32.") + m, "b32", {"b32", "b32", "b32"});
  for (const int table : {0x00, 0x1b, 0x80, 0x96, 0xca, 0xe8, 0xff})
    forms.raw("lop3.b32 D, A, B, C, " + std::to_string(table), "b32", {"b32", "b32", "b32"});
  for (const std::string op : {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"})
    for (const std::string parts : {"2", "4"})
      for (const std::string& t : ints32)
        forms.raw(op + parts + "." + t + "." + t + "." + t + " D, A, B, C", t, {"b32", "b32", "b32"});
  for (const std::string parts : {"2", "4"})
    for (const std::string& t : ints32)
      forms.raw("vabsdiff" + parts + ".u32." + t + "." + t + ".add D, A, B, C", "u32", {"b32", "b32", "b32"});
  for (const char* t : {"u16x2", "s16x2"})
    for (const char* op : {"add.", "min.", "max."}) forms.add(std::string(op) + t, "b32", {"b32", "b32"});
  for (const char* op : {"bmsk.clamp.b32", "bmsk.wrap.b32"}) forms.add(op, "b32", {"shift", "shift"});
  for (const std::string op : {"szext.clamp.", "szext.wrap."})
    for (const std::string& t : ints32) forms.add(op + t, t, {t, "shift"});
  forms.raw("selp.b32 D, A, B, C", "b32", {"b32", "b32", "pred"});
  forms.raw("selp.b64 D, A, B, C", "b64", {"b64", "b64", "pred"});
  forms.raw("slct.u32.s32 D, A, B, C", "b32", {"b32", "b32", "s32"});
  forms.raw("slct.b64.f32 D, A, B, C", "b64", {"b64", "b64", "f32"});
  forms.raw("slct.ftz.u32.f32 D, A, B, C", "b32", {"b32", "b32", "f32"});
  for (const char* op : {"and", "or", "xor"})
    forms.add(std::string("setp.lt.") + op + ".s32", "pred", {"s32", "s32", "pred"});
  forms.raw("mov.b64 D, {A, B}", "b64", {"b32", "b32"});
  forms.raw("mov.b32 D, {A, B}", "b32", {"b16", "b16"});
}

void floats(Forms& forms) {
  for (const std::string t : {"f32", "f64"}) {
    for (const std::string r : {".rn", ".rz", ".rm", ".rp"}) {
      for (const char* op : {"add", "sub", "mul", "div"}) forms.same(op + r, t, 2);
      forms.same("fma" + r, t, 3);
      for (const char* op : {"rcp", "sqrt"}) forms.same(op + r, t, 1);
    }
    for (const char* op : {"min", "max", "copysign"}) forms.same(op, t, 2);
    for (const char* op : {"neg", "abs"}) forms.same(op, t, 1);
    for (const char* c : {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"})
      forms.add("setp." + std::string(c) + "." + t, "pred", {t, t});
    for (const char* c : {"finite", "infinite", "number", "notanumber", "normal", "subnormal"})
      forms.add("testp." + std::string(c) + "." + t, "pred", {t});
  }
  for (const char* op : {"add.ftz", "sub.ftz", "mul.ftz", "add.sat", "sub.sat", "mul.sat", "add.ftz.sat", "min.ftz",
                         "max.ftz", "div.rn.ftz", "add.rz.ftz"})
    forms.same(op, "f32", 2);
  for (const char* op : {"fma.rn.ftz", "fma.rn.sat", "fma.rn.ftz.sat", "fma.rp.ftz"}) forms.same(op, "f32", 3);
  for (const char* op : {"rcp.rn.ftz", "sqrt.rn.ftz", "neg.ftz", "abs.ftz"}) forms.same(op, "f32", 1);
  for (const char* op : {"min.NaN", "max.NaN", "min.xorsign.abs", "max.NaN.xorsign.abs"}) forms.same(op, "f32", 2);
  for (const char* c : {"lt", "geu", "eq"}) forms.add("setp." + std::string(c) + ".ftz.f32", "pred", {"f32", "f32"});
  for (const char* d : {"u32", "s32", "f32"}) forms.add(std::string("set.le.") + d + ".f32", d, {"f32", "f32"});
}

void halves(Forms& forms) {
  for (const std::string t : {"f16", "f16x2", "bf16", "bf16x2"}) {
    for (const char* op : {"add.rn", "sub.rn", "mul.rn", "min", "max", "min.NaN", "max.NaN"}) forms.same(op, t, 2);
    forms.same("fma.rn", t, 3);
    forms.same("fma.rn.relu", t, 3);
    for (const char* op : {"neg", "abs"}) forms.same(op, t, 1);
    if (t[0] == 'f')
      for (const char* op : {"add.ftz", "mul.ftz", "add.sat", "sub.sat", "mul.sat", "min.ftz"}) forms.same(op, t, 2);
  }
  for (const std::string t : {"f16", "bf16"})
    for (const char* c : {"eq", "ne", "lt", "geu", "nan"})
      forms.add("setp." + std::string(c) + "." + t, "pred", {t, t});
  for (const char* d : {"u32", "f16"}) forms.add(std::string("set.lt.") + d + ".f16", d, {"f16", "f16"});
  forms.add("set.ge.f16x2.f16x2", "f16x2", {"f16x2", "f16x2"});
  forms.add("set.gtu.u32.bf16x2", "u32", {"bf16x2", "bf16x2"});
}

int sizeOfName(const std::string& type) { return std::stoi(type.substr(1)); }

void conversions(Forms& forms) {
  const Names whole{"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"};
  for (const std::string& to : whole)
    for (const std::string& from : whole) {
      if (to != from) forms.add("cvt." + to + "." + from, to, {from});
      // Only if a value may be out of range: ptxas accepts `.sat` nowhere else.
      const bool bothSigned = to[0] == from[0], wider = sizeOfName(to) > sizeOfName(from),
                 same = sizeOfName(to) == sizeOfName(from);
      if (!(bothSigned && (wider || same)) && !(to[0] == 's' && wider))
        forms.add("cvt.sat." + to + "." + from, to, {from});
    }
  for (const std::string& w : whole) {
    for (const std::string f : {"f32", "f64"}) {
      for (const std::string r : {".rn", ".rz", ".rm", ".rp"}) forms.add("cvt" + r + "." + f + "." + w, f, {w});
      for (const std::string r : {".rni", ".rzi", ".rmi", ".rpi"}) forms.add("cvt" + r + "." + w + "." + f, w, {f});
    }
    forms.add("cvt.rn.f16." + w, "f16", {w});
    forms.add("cvt.rni." + w + ".f16", w, {"f16"});
    forms.add("cvt.rzi.ftz." + w + ".f32", w, {"f32"});
  }
  for (const std::string r : {".rn", ".rz", ".rm", ".rp"}) forms.add("cvt" + r + ".f32.f64", "f32", {"f64"});
  for (const std::string r : {".rn", ".rz"}) {
    forms.add("cvt" + r + ".f16.f32", "f16", {"f32"});
    forms.add("cvt" + r + ".bf16.f32", "bf16", {"f32"});
    forms.add("cvt" + r + ".f16x2.f32", "b32", {"f32", "f32"});
    forms.add("cvt" + r + ".relu.bf16x2.f32", "b32", {"f32", "f32"});
  }
  forms.add("cvt.rm.f16.f32", "f16", {"f32"});
  forms.add("cvt.rp.f16.f32", "f16", {"f32"});
  forms.add("cvt.rn.f16.f64", "f16", {"f64"});
  forms.add("cvt.f32.f16", "f32", {"f16"});
  forms.add("cvt.f64.f16", "f64", {"f16"});
  forms.add("cvt.f32.bf16", "f32", {"bf16"});
  forms.add("cvt.f64.f32", "f64", {"f32"});
  forms.add("cvt.ftz.f64.f32", "f64", {"f32"});
  forms.add("cvt.rn.ftz.f32.f64", "f32", {"f64"});
  for (const std::string r : {"rni", "rzi", "rmi", "rpi"}) {
    forms.add("cvt." + r + ".f32.f32", "f32", {"f32"});
    forms.add("cvt." + r + ".f64.f64", "f64", {"f64"});
    forms.add("cvt." + r + ".f16.f16", "f16", {"f16"});
    forms.add("cvt." + r + ".ftz.f32.f32", "f32", {"f32"});
  }
  forms.add("cvt.sat.f32.f32", "f32", {"f32"});
  forms.add("cvt.rna.tf32.f32", "b32", {"f32"});
  forms.add("cvt.sat.f16.f16", "f16", {"f16"});
  for (const char* w : {"u64", "s64", "u32", "s16"}) forms.add(std::string("cvt.rn.bf16.") + w, "bf16", {w});
  for (const std::string r : {".rz", ".rm", ".rp"}) forms.add("cvt" + r + ".f16.s64", "f16", {"s64"});
}

// ---- operands: half of them are edge values, the others are spread over all exponents or small

uint64_t next(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t pick(std::span<const uint64_t> edges, uint64_t& state) { return edges[next(state) % edges.size()]; }

uint64_t wholeValue(uint64_t& state) {
  static constexpr uint64_t edgeValues[] = {0,
                                            1,
                                            2,
                                            ~0ull,
                                            ~1ull,
                                            0x7f,
                                            0x80,
                                            0xff,
                                            0x100,
                                            0x7fff,
                                            0x8000,
                                            0xffff,
                                            0x10000,
                                            0x7fffffff,
                                            0x80000000,
                                            0xffffffff,
                                            0x100000000,
                                            0x7fffffffffffffff,
                                            0x8000000000000000,
                                            0xffffffff80000000,
                                            0xffffffffffff8000,
                                            0xffffffffffffff80,
                                            0x1000001,
                                            0x20000000000001,
                                            10,
                                            3};
  const uint64_t choice = next(state) % 4;
  if (choice == 0) return pick(edgeValues, state);
  const uint64_t value = next(state);
  return choice == 1 ? value >> (next(state) % 64) : choice == 2 ? ~(value >> (next(state) % 64)) : value;
}

uint64_t floatValue(uint64_t& state) {
  static constexpr uint64_t edgeValues[] = {
      0,          0x80000000, 1,          0x80000001, 0x7fffff,   0x807fffff, 0x800000,   0x80800000, 0x3f800000,
      0xbf800000, 0x3effffff, 0x3f000000, 0x3fc00000, 0x40200000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
      0x7fc00000, 0xffc00001, 0x7f800001, 0x4b000000, 0x4effffff, 0x4f000000, 0xcf000000, 0x4f800000, 0x5f000000,
      0x477fe000, 0x477ff000, 0x33800000, 0x33000001, 0x38800000, 0x7e967699, 0x00ffffff};
  const uint64_t choice = next(state) % 4, value = next(state);
  if (choice == 0) return pick(edgeValues, state);
  if (choice == 1) return value & 0xffffffff;
  const uint64_t exponent = choice == 2 ? 117 + next(state) % 45 : 96 + next(state) % 64;
  return (value & 0x807fffff) | exponent << 23;
}

uint64_t doubleValue(uint64_t& state) {
  static constexpr uint64_t edgeValues[] = {0,
                                            0x8000000000000000,
                                            1,
                                            0x8000000000000001,
                                            0xfffffffffffff,
                                            0x10000000000000,
                                            0x3ff0000000000000,
                                            0xbff0000000000000,
                                            0x3fe0000000000000,
                                            0x4004000000000000,
                                            0x7fefffffffffffff,
                                            0x7ff0000000000000,
                                            0xfff0000000000000,
                                            0x41dfffffffc00000,
                                            0x41e0000000000000,
                                            0xc1e0000000000000,
                                            0x43e0000000000000,
                                            0x43f0000000000000,
                                            0x47efffffe0000000,
                                            0x47efffffefffffff,
                                            0x47effffff0000000,
                                            0x380fffffffffffff,
                                            0x36a0000000000000,
                                            0x3690000000000001,
                                            0x40effc0000000000,
                                            0x7ff8000000000000};
  const uint64_t choice = next(state) % 4, value = next(state);
  if (choice == 0) return pick(edgeValues, state);
  if (choice == 1 && (value & 0x7ff0000000000000) != 0x7ff0000000000000) return value;
  const uint64_t exponent = choice == 2 ? 1010 + next(state) % 60 : 870 + next(state) % 300;
  return (value & 0x800fffffffffffff) | exponent << 52;
}

uint64_t halfValueOf(uint64_t& state) {
  static constexpr uint64_t edgeValues[] = {0,      0x8000, 1,      0x8001, 0x3ff,  0x400,  0x3c00, 0xbc00, 0x3800,
                                            0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 0x3f80, 0x7f7f,
                                            0x7f80, 0xff80, 0x7fc0, 0x0080, 0x007f, 0x4100, 0x3e00};
  return next(state) % 3 == 0 ? pick(edgeValues, state) : next(state) & 0xffff;
}

uint64_t leastValue(uint64_t& state) {
  static constexpr uint64_t edgeValues[] = {0x3f000000, 0x00ffffff, 0x3f7fffff, 0x00800000, 0x00800001, 0x3effffff, 0x01000000,
                                            0x01000001, 0x3f7ffffe, 0x00fffffe, 0x3f800001, 0x40000000, 0x7e800001, 0};
  return pick(edgeValues, state) | (next(state) & 0x80000000);
}

uint64_t outsideValue(uint64_t& state) {
  static constexpr uint64_t edgeValues[] = {0x7ff7, 0xfff7, 0x7fff, 0x7e00, 0x7ff6, 0xffff, 0x7fc0, 0x3c00, 0x3f80, 0xc100};
  return next(state) % 3 ? pick(edgeValues, state) : halfValueOf(state);
}

uint64_t value(const std::string& type, uint64_t& state) {
  if (type == "least") return leastValue(state);
  if (type == "outside") return outsideValue(state);
  if (type == "outsidex2") {
    const uint64_t low = outsideValue(state);
    return low | outsideValue(state) << 16;
  }
  if (type == "shift") return next(state) % 3 ? next(state) % 70 : next(state) & 0xffffffff;
  if (type == "field") {
    const uint64_t number = next(state);
    return number % (next(state) % 4 ? 70 : 256);
  }
  if (type == "pred") return next(state) & 1;
  if (type == "f32") return floatValue(state);
  if (type == "f64") return doubleValue(state);
  if (type == "f16" || type == "bf16") return halfValueOf(state);
  if (type.ends_with("x2")) {
    const uint64_t low = halfValueOf(state);
    return low | halfValueOf(state) << 16;
  }
  return wholeValue(state);
}

std::string bitsOf(const std::string& operand) {
  if (operand == "outside") return "b16";
  return operand == "shift" || operand == "field" || operand == "least" ? "b32" : bits(operand);
}

}  // namespace

std::vector<Form> allForms() {
  Forms forms;
  integers(forms);
  bitOperations(forms);
  floats(forms);
  halves(forms);
  conversions(forms);
  return std::move(forms.list);
}

std::string formKernel(const Form& form) {
  std::string text =
      ".version 8.3\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b64 %p<8>;\n.reg .b32 %t<8>;\n"
      "mov.u32 %t0, %tid.x;\nmov.u32 %t1, %ctaid.x;\nmov.u32 %t2, %ntid.x;\nmad.lo.s32 %t0, %t1, %t2, %t0;\n"
      "ld.param.u64 %p0, [in];\nld.param.u64 %p1, [out];\nmul.wide.u32 %p2, %t0, 24;\nadd.s64 %p0, %p0, %p2;\n"
      "mul.wide.u32 %p2, %t0, 8;\nadd.s64 %p1, %p1, %p2;\n.reg ." +
      form.result + " D;\n";
  for (size_t i = 0; i < form.operands.size(); ++i) {
    const std::string name(1, static_cast<char>('A' + i)), type = bitsOf(form.operands[i]),
                                                           from = "[%p0+" + std::to_string(i * 8) + "];\n";
    text += ".reg ." + type + " " + name + ";\n";
    if (type == "pred")
      text += "ld.global.b32 %t3, " + from + "setp.ne.u32 " + name + ", %t3, 0;\n";
    else
      text += "ld.global." + type + " " + name + ", " + from;
  }
  text += form.text + ";\n";
  if (form.result == "pred")
    text += "selp.u32 %t4, 1, 0, D;\nst.global.b32 [%p1], %t4;\n";
  else
    text += "st.global." + form.result + " [%p1], D;\n";
  return text + "ret;\n}\n";
}

std::vector<uint64_t> formInputs(const Form& form) {
  uint64_t state = 0;
  for (const char c : form.text) state = state * 31 + static_cast<uint8_t>(c);
  std::vector<uint64_t> inputs(size_t{3} * formThreads);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (i % 3 < form.operands.size()) inputs[i] = value(form.operands[i % 3], state);
  return inputs;
}

uint64_t formDigest(std::span<const uint64_t> results) {
  uint64_t digest = 0xcbf29ce484222325;
  for (const uint64_t result : results) digest = std::rotl((digest ^ result) * 0x9e3779b97f4a7c15, 29);
  return digest;
}

}  // namespace vgpu::emulator
