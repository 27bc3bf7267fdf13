#include "ptx-video-forms.h"

#include <algorithm>

namespace vgpu::emulator {
namespace {

using Wide = __int128;

std::string suffix(const std::string& text) { return text.empty() ? "" : "." + text; }

Wide signedPart(uint32_t value, uint32_t bits, bool isSigned) {
  const Wide low = bits == 32 ? value : value & ((1u << bits) - 1);
  return isSigned && low >> (bits - 1) ? low - (Wide{1} << bits) : low;
}
uint32_t bitsOfSelector(const std::string& selector) { return selector.empty() ? 32 : selector[0] == 'b' ? 8 : 16; }
uint32_t shiftOfSelector(const std::string& selector) {
  return selector.empty() ? 0 : bitsOfSelector(selector) * static_cast<uint32_t>(selector[1] - '0');
}
Wide selected(uint32_t value, const std::string& selector, const std::string& type) {
  return signedPart(value >> shiftOfSelector(selector), bitsOfSelector(selector), type == "s32");
}
Wide clamped(Wide value, uint32_t bits, bool isSigned) {
  const Wide most = (Wide{1} << (bits - isSigned)) - 1;
  return std::clamp<Wide>(value, isSigned ? -most - 1 : 0, most);
}
bool compares(const std::string& how, Wide a, Wide b) {
  return how == "eq" ? a == b : how == "ne" ? a != b : how == "lt" ? a < b : how == "le" ? a <= b : how == "gt" ? a > b : a >= b;
}

// PTX ISA, vmad: the sum has 128 bits.
uint32_t multiplyAdd(const VideoForm& form, Wide a, Wide b, uint32_t c) {
  const bool negated = form.sign == "a" || form.sign == "b",
             isSigned = form.a == "s32" || form.b == "s32" || (!form.sign.empty() && form.sign != "+");
  Wide sum = a * b;
  if (negated) sum = -sum;
  const Wide third = signedPart(c, 32, isSigned);
  sum += form.sign == "c" ? -third : third;
  sum += form.sign == "+";
  sum >>= form.how == "shr7" ? 7 : form.how == "shr15" ? 15 : 0;
  return static_cast<uint32_t>(form.saturates ? clamped(sum, 32, isSigned) : sum);
}

}  // namespace

std::string VideoForm::text() const {
  std::string text = operation;
  if (operation != "vset") text += "." + d;
  text += "." + a + "." + b;
  if (operation == "vmad") {
    if (sign == "+") text += ".po";
    text += (saturates ? ".sat" : "") + suffix(how);
    return text + " D, " + (sign == "a" ? "-" : "") + "A" + suffix(ofA) + ", " + (sign == "b" ? "-" : "") + "B" + suffix(ofB) + ", " +
           (sign == "c" ? "-" : "") + "C";
  }
  text += (saturates ? ".sat" : "") + suffix(how) + suffix(second) + " D" + suffix(into) + ", A" + suffix(ofA) + ", B" + suffix(ofB);
  return second.empty() && into.empty() ? text : text + ", C";
}

uint32_t VideoForm::result(uint32_t x, uint32_t y, uint32_t c) const {
  const Wide one = selected(x, ofA, a), other = selected(y, ofB, b);
  if (operation == "vmad") return multiplyAdd(*this, one, other, c);
  const bool isSigned = operation != "vset" && d == "s32";
  const auto by = static_cast<int>(how == "wrap" ? other & 31 : std::min<Wide>(other, 32));
  Wide value = operation == "vadd"       ? one + other
               : operation == "vsub"     ? one - other
               : operation == "vabsdiff" ? (one < other ? other - one : one - other)
               : operation == "vmin"     ? std::min(one, other)
               : operation == "vmax"     ? std::max(one, other)
               : operation == "vshr"     ? one >> by
               : operation == "vshl"     ? one * (Wide{1} << by)
                                         : Wide{compares(how, one, other)};
  value &= (Wide{1} << 34) - 1;  // the intermediate result has 34 bits and a sign
  if (value >> 33) value -= Wide{1} << 34;
  if (saturates) value = clamped(value, bitsOfSelector(into), isSigned);
  const auto low = static_cast<uint32_t>(value);
  if (second == "add") return low + c;
  if (!second.empty()) {
    const Wide p = signedPart(low, 32, isSigned), q = signedPart(c, 32, isSigned);
    return static_cast<uint32_t>(second == "min" ? std::min(p, q) : std::max(p, q));
  }
  if (into.empty()) return low;
  const uint32_t mask = ((1u << bitsOfSelector(into)) - 1) << shiftOfSelector(into);
  return (low << shiftOfSelector(into) & mask) | (c & ~mask);
}

// Every operation with every type; each selector, combination and position occurs at least once.
std::vector<VideoForm> videoForms() {
  const std::string types[] = {"u32", "s32"}, selectors[] = {"", "b0", "h1", "b3", "h0", "", "b1", "b2"},
                    seconds[] = {"", "add", "min", "max"}, places[] = {"h0", "b0", "h1", "b1", "b2", "b3"};
  std::vector<VideoForm> list;
  size_t turn = 0;
  const auto next = [&](const auto& from) { return from[turn++ % std::size(from)]; };
  const auto variants = [&](VideoForm form) {
    for (const std::string& second : seconds) {
      form.ofA = next(selectors), form.ofB = next(selectors), form.second = second;
      list.push_back(form);
    }
    form.second = "", form.into = next(places);
    list.push_back(form);
  };
  for (const std::string& d : types)
    for (const std::string& a : types) {
      for (const std::string& b : types)
        for (const bool saturates : {false, true}) {
          for (const std::string operation : {"vadd", "vsub", "vabsdiff", "vmin", "vmax"})
            variants({operation, d, a, b, "", "", "", "", "", "", saturates});
          for (const std::string how : {"", "shr7", "shr15"})
            for (const std::string sign : {"", "a", "b", "c", "+"}) {
              list.push_back({"vmad", d, a, b, "", "", "", "", how, sign, saturates});
              list.push_back({"vmad", d, a, b, "", next(selectors), next(selectors), "", how, sign, saturates});
            }
        }
      for (const std::string how : {"clamp", "wrap"})
        for (const bool saturates : {false, true})
          for (const std::string operation : {"vshl", "vshr"})
            variants({operation, d, a, "u32", "", "", "", "", how, "", saturates});
    }
  for (const std::string& a : types)
    for (const std::string& b : types)
      for (const std::string how : {"eq", "ne", "lt", "le", "gt", "ge"}) variants({"vset", "u32", a, b, "", "", "", "", how, "", false});
  return list;
}

std::vector<Form> scalarVideoForms() {
  std::vector<Form> list;
  for (const VideoForm& form : videoForms()) {
    const bool shifts = form.operation == "vshl" || form.operation == "vshr";
    list.push_back({form.text(), "b32", {"u32", shifts && form.ofB.empty() ? "shift" : "u32", "u32"}});
  }
  return list;
}

}  // namespace vgpu::emulator
