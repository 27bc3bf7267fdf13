// More forms for ptx-forms.h, which hand-written PTX uses rather than a compiler.
#include "ptx-forms.h"

namespace vgpu::emulator {
namespace {

using Operands = std::vector<std::string>;

std::string wordOf(const std::string& type) {
  if (type == "pred") return type;
  if (type.ends_with("x2") || type == "tf32") return "b32";
  const std::string digits = type.substr(type.find_first_of("0123456789"));
  return digits == "8" ? "b16" : "b" + digits;
}

class WiderForms {
 public:
  std::vector<Form> list;

  // Adds `text` unchanged; without a D it is an opcode, and operands are appended.
  void add(const std::string& text, const std::string& result, const Operands& operands) {
    std::string whole = text;
    if (text.find(" ") == std::string::npos) {
      whole += " D";
      for (size_t i = 0; i < operands.size(); ++i) whole += std::string(", ") + static_cast<char>('A' + i);
    }
    list.push_back({whole, wordOf(result), operands});
  }
};

constexpr const char* halfTypes[] = {"f16", "bf16"};
constexpr const char* ordered[] = {"eq", "ne", "lt", "le", "gt", "ge"};
constexpr const char* unordered[] = {"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
constexpr const char* combiners[] = {"and", "or", "xor"};

void comparisons(WiderForms& forms) {
  for (const std::string t : {"u16", "s32", "u64", "f32", "f64"})
    for (const char* combine : combiners) {
      const std::string name = std::string("setp.ge.") + combine + "." + t;
      forms.add(".reg .pred Q; " + name + " Q|D, A, B, !C", "pred", {t, t, "pred"});
      forms.add(".reg .pred Q; " + name + " D|Q, A, B, C; xor.pred D, D, Q", "pred", {t, t, "pred"});
    }
  for (const std::string t : halfTypes) {
    const std::string two = t + "x2";
    for (const auto* list : {std::begin(ordered), std::begin(unordered)})
      for (const auto* c = list; c != (list == ordered ? std::end(ordered) : std::end(unordered)); ++c) {
        const std::string compare = *c;
        forms.add("setp." + compare + "." + t, "pred", {t, t});
        forms.add(".reg .pred Q; setp." + compare + "." + two + " Q|D, A, B", "pred", {two, two});
        if (t == "f16") forms.add("setp." + compare + ".ftz.f16", "pred", {t, t});
      }
    for (const std::string to : {"u16", "s16", "u32", "s32", t.c_str()}) forms.add("set.geu." + to + "." + t, to, {t, t});
    for (const std::string to : {"u32", "s32", two.c_str()}) {
      forms.add("set.ltu." + to + "." + two, "b32", {two, two});
      forms.add("set.eq.or." + to + "." + two, "b32", {two, two, "pred"});
    }
  }
  for (const std::string from : {"b16", "u16", "s32", "b64", "u64", "f64"})
    for (const std::string to : {"u32", "s32", "f32", "f16"}) forms.add("set.ne." + to + "." + from, to, {from, from});
  for (const std::string t : {"b16", "s16", "u32", "f32", "s64", "f64"}) {
    forms.add("selp." + t, t, {t, t, "pred"});
    forms.add("slct." + t + ".s32", t, {t, t, "s32"});
    forms.add("slct." + t + ".f32", t, {t, t, "f32"});
  }
  forms.add("and.pred D, A, 1", "pred", {"pred"});
  forms.add("or.pred D, A, 1", "pred", {"pred"});
  forms.add("xor.pred D, A, 1", "pred", {"pred"});
}

void wholeNumbers(WiderForms& forms) {
  forms.add("mad24.hi.sat.s32", "s32", {"s32", "s32", "s32"});
  for (const std::string t : {"s32", "s64"})
    for (const std::string half : {"lo", "hi"}) {
      const std::string begin = "add.cc." + t + " D, A, B; ", end = " D, A, B, C; addc." + t + " D, D, 0";
      forms.add(begin + "mad." + half + ".cc." + t + end, t, {t, t, t});
      forms.add(begin + "madc." + half + "." + t + end, t, {t, t, t});
      forms.add(begin + "madc." + half + ".cc." + t + end, t, {t, t, t});
    }
  for (const std::string op : {"or", "and"})
    for (const std::string table : {"30", "232"})
      forms.add(".reg .pred Q, R; setp.gt.u32 R, C, 9; lop3." + op + ".b32 D|Q, A, B, C, " + table + ", !R; @Q not.b32 D, D", "b32",
                {"b32", "b32", "b32"});
  for (const char* op : {"min.s16x2.relu", "max.s16x2.relu", "min.relu.s16x2"}) forms.add(op, "b32", {"b32", "b32"});
  // Constant expressions are signed or unsigned.
  for (const char* constant : {"-8/2", "-8>>1", "0xF000000000000000/2", "-7 % 3", "1|6", "(3>2)?5:6", "!5", "-1 < 0U", "~0x10&0xff"})
    forms.add(std::string("add.s64 D, A, ") + constant, "s64", {"s64"});
}

void videos(WiderForms& forms) {
  const char* const words[] = {"u32", "s32"};
  const Operands operands{"b32", "b32", "b32"};
  for (const std::string parts : {"2", "4"}) {
    for (const std::string op : {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"})
      for (const std::string d : words)
        for (const std::string a : words)
          for (const std::string b : words)
            for (const std::string second : {"", ".sat", ".add"}) {
              // The others are in ptx-forms.cc.
              if (second.empty() && d == a && a == b) continue;
              if (op == "vabsdiff" && second == ".add" && d == "u32" && a == b) continue;
              if (second == ".add" && a != d) continue;
              forms.add(op + parts + "." + d + "." + a + "." + b + second + " D, A, B, C", "b32", operands);
            }
    for (const std::string compare : ordered)
      for (const std::string t : words)
        for (const std::string second : {"", ".add"})
          forms.add("vset" + parts + "." + t + "." + t + "." + compare + second + " D, A, B, C", "b32", operands);
  }
  forms.add("vadd4.u32.u32.u32.sat D.b20, A.b7610, B, C", "b32", operands);
  forms.add("vsub4.s32.s32.u32 D.b3, A, B.b0246, C", "b32", operands);
  forms.add("vabsdiff2.s32.s32.s32.add D.h1, A.h32, B.h01, C", "b32", operands);
  forms.add("vset2.s32.u32.lt D.h0, A.h10, B.h33, C", "b32", operands);
}

void floatForms(WiderForms& forms) {
  for (const std::string op : {"min", "max"})
    for (const std::string ftz : {"", ".ftz"})
      for (const std::string nan : {"", ".NaN"}) {
        forms.add(op + ftz + nan + ".xorsign.abs.f32", "f32", {"f32", "f32"});
        for (const std::string t : {"f16", "f16x2", "bf16", "bf16x2"}) {
          if (t[0] == 'b' && !ftz.empty()) continue;
          forms.add(op + ftz + nan + "." + t, t, {t, t});
          forms.add(op + ftz + nan + ".xorsign.abs." + t, t, {t, t});
        }
      }
  for (const std::string round : {".rn", ".rz", ".rm", ".rp"}) {
    for (const std::string sat : {"", ".sat"}) {
      forms.add("mul" + round + ".ftz" + sat + ".f32", "f32", {"least", "least"});
      forms.add("fma" + round + ".ftz" + sat + ".f32", "f32", {"least", "least", "least"});
      forms.add("add" + round + ".ftz" + sat + ".f32", "f32", {"least", "least"});
    }
    forms.add("div" + round + ".ftz.f32", "f32", {"least", "least"});
    forms.add("rcp" + round + ".ftz.f32", "f32", {"least"});
    forms.add("cvt" + round + ".ftz.f32.f64", "f32", {"f64"});
  }
  for (const std::string t : halfTypes) {
    const std::string two = t + "x2", outside = "outside";
    for (const std::string relu : {"", ".relu"}) {
      forms.add("fma.rn.oob" + relu + "." + t, t, {outside, outside, t});
      forms.add("fma.rn.oob" + relu + "." + two, two, {outside + "x2", outside + "x2", two});
    }
    if (t == "f16")
      for (const std::string sat : {"", ".sat", ".relu"}) {
        forms.add("fma.rn.ftz" + sat + ".f16", t, {t, t, t});
        forms.add("fma.rn.ftz" + sat + ".f16x2", two, {two, two, two});
      }
  }
}

void moreConversions(WiderForms& forms) {
  for (const std::string to : halfTypes) {
    for (const std::string from : halfTypes) {
      forms.add("cvt." + to + "." + from, to, {from});
      if (to != from) forms.add("cvt.rz." + to + "." + from, to, {from});
    }
    for (const std::string round : {".rn", ".rz", ".rm", ".rp"}) {
      forms.add("cvt" + round + "." + to + ".f64", to, {"f64"});
      forms.add("cvt" + round + ".ftz." + to + ".f32", to, {"f32"});
      for (const std::string from : {"u16", "s16", "u32", "s64"}) forms.add("cvt" + round + "." + to + "." + from, to, {from});
      for (const std::string whole : {"u16", "s16", "s32", "u64"}) forms.add("cvt" + round + "i." + whole + "." + to, whole, {to});
    }
    forms.add("cvt.ftz.f32." + to, "f32", {to});
    forms.add("cvt.f64." + to, "f64", {to});
  }
  for (const char* t : {"bf16", "f64"}) forms.add(std::string("cvt.rni.") + t + "." + t, t, {t});
  for (const std::string relu : {"", ".relu"})
    for (const std::string round : {".rn", ".rz"}) forms.add("cvt" + round + relu + ".tf32.f32", "tf32", {"f32"});
}

void atomics(WiderForms& forms) {
  for (const std::string t : {"f32", "f16", "f16x2", "bf16", "bf16x2"}) {
    const std::string word = wordOf(t), type = t == "f32" ? t : "noftz." + t;
    forms.add("st.global." + word + " [%p1], A; atom.global.add." + type + " D, [%p1], B; ld.global." + word + " D, [%p1]", t, {t, t});
    forms.add("red.global.add." + type + " [%p1], B; ld.global." + word + " D, [%p1]", t, {t, t});
  }
}

}  // namespace

std::vector<Form> widerForms() {
  WiderForms forms;
  comparisons(forms);
  wholeNumbers(forms);
  videos(forms);
  floatForms(forms);
  moreConversions(forms);
  atomics(forms);
  return std::move(forms.list);
}

}  // namespace vgpu::emulator
