// Conversions to formats of 8 bits and less, compared with references that search instead of computing.
#include <algorithm>
#include <bit>
#include <cmath>

#include "../sanitizer-share.h"
#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

struct Format {
  const char* name;
  int mantissa, bias;
  uint32_t most;  // the code of the largest finite value
  uint32_t sign = 0x80, nan = 0x7f;
  int bits = 8;  // of each float of a pair, with padding
};
constexpr Format formatRows[] = {{"e4m3x2", 3, 7, 0x7e}, {"e5m2x2", 2, 15, 0x7b}};
constexpr Format smallRows[] = {
    {"e2m3x2", 3, 1, 0x1f, 0x20, 0x1f}, {"e3m2x2", 2, 3, 0x1f, 0x20, 0x1f}, {"e2m1x2", 1, 1, 0x7, 0x8, 0x7, 4}};

double valueOf(const Format& format, uint32_t code) {
  const auto exponent = static_cast<int>((code & (format.sign - 1)) >> format.mantissa);
  const double fraction = code & ((1u << format.mantissa) - 1), one = 1 << format.mantissa;
  const double size =
      exponent ? std::ldexp(1 + fraction / one, exponent - format.bias) : std::ldexp(fraction / one, 1 - format.bias);
  return code & format.sign ? -size : size;
}

// The code of the nearest finite value; of two, the even code.
uint32_t nearest(const Format& format, double value, bool relu) {
  if (std::isnan(value)) return format.nan;
  if (relu && std::signbit(value)) return 0;
  const double size = std::min(std::fabs(value), 1e6);
  uint32_t best = 0;
  for (uint32_t code = 0; code <= format.most; ++code) {
    const double distance = std::fabs(valueOf(format, code) - size), least = std::fabs(valueOf(format, best) - size);
    if (distance < least || (distance == least && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(value) ? format.sign : 0);
}

double halfValue(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 0x3ff);
  const double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                      : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                                     : std::ldexp(fraction, -24);
  return bits & 0x8000 ? -size : size;
}

// out[i] = instruction(in[i]...), with the inputs of thread i adjacent.
std::vector<uint32_t> each(const std::string& instruction, const std::vector<uint32_t>& in, uint32_t count) {
  const auto inputs = static_cast<uint32_t>(in.size() / count);
  std::string body =
      R"(.reg .pred %p; .reg .b8 %y<2>; .reg .b16 %h<2>; .reg .b32 %i, %n, %a, %b, %c, %d; .reg .f32 %f, %g; .reg .b64 %x<4>;
    mov.u32 %n, %ctaid.x; mov.u32 %a, %tid.x; mad.lo.u32 %i, %n, 256, %a;
    ld.param.u64 %x0, [in]; mul.wide.u32 %x1, %i, )" +
      std::to_string(4 * inputs) + "; add.s64 %x0, %x0, %x1;\n";
  const char* const names[] = {"%a", "%b", "%c"};
  for (uint32_t k = 0; k < inputs; ++k)
    body += std::string("ld.global.u32 ") + names[k] + ", [%x0+" + std::to_string(4 * k) + "];\n";
  body += instruction + R"(
    ld.param.u64 %x2, [out]; mul.wide.u32 %x1, %i, 4; add.s64 %x2, %x2, %x1; st.global.u32 [%x2], %d; ret;)";
  Device device(kernelText(".param .u64 in, .param .u64 out", body));
  const uint64_t from = device.upload(in), to = device.upload(std::vector<uint32_t>(count));
  device("k", {{count / 256, 1, 1}, {256, 1, 1}}, from, to);
  return device.download<uint32_t>(to, count);
}

void checkCodes(const Format& format, bool relu, const std::vector<uint32_t>& got, const std::vector<double>& hi,
                const std::vector<double>& lo) {
  size_t wrong = 0;
  for (size_t i = 0; i < got.size() && wrong < 5; ++i) {
    const uint32_t wanted = nearest(format, hi[i], relu) << format.bits | nearest(format, lo[i], relu);
    if (got[i] == wanted) continue;
    ++wrong;
    CAPTURE(format.name);
    CAPTURE(hi[i]);
    CAPTURE(lo[i]);
    CHECK_EQ(got[i], wanted);
  }
  CHECK_EQ(wrong, 0);
}

}  // namespace

TEST_CASE("every pair of adjacent halves becomes the nearest 8-bit floats") {
  constexpr uint32_t count = 65536 / sanitizerShare / 256 * 256;  // whole blocks
  std::vector<uint32_t> in(count);
  std::vector<double> hi(count), lo(count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t one = i * sanitizerShare, other = (one * 40503 + 1) & 0xffff;
    in[i] = other << 16 | one;
    hi[i] = halfValue(other), lo[i] = halfValue(one);
  }
  for (const Format& format : formatRows)
    for (const bool relu : {false, true})
      checkCodes(format, relu,
                 each(std::string("cvt.rn.satfinite") + (relu ? ".relu." : ".") + format.name +
                          ".f16x2 %h0, %a; cvt.u32.u16 %d, %h0;",
                      in, count),
                 hi, lo);
}

// `instruction` ends in the name of the format. A pair of 4-bit floats takes an 8-bit register.
std::string toPair(const Format& format, const std::string& instruction, const std::string& operands) {
  return instruction + (format.bits == 4 ? " %y0, " + operands + "; mov.b16 %h0, {%y0, 0};" : " %h0, " + operands + ";") +
         " cvt.u32.u16 %d, %h0;";
}

void checkAround(std::span<const Format> formats) {
  for (const Format& format : formats) {
    std::vector<float> values{0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, -1e-40f, 3e38f, -3e38f, 464.0f, 465.0f};
    for (uint32_t code = 0; code < format.most; ++code) {
      const auto at = static_cast<float>(valueOf(format, code)),
                 tie = static_cast<float>((valueOf(format, code) + valueOf(format, code + 1)) / 2);
      for (const float each : {at, tie})
        for (const float near : {std::nextafter(each, -1e9f), each, std::nextafter(each, 1e9f)})
          values.insert(values.end(), {near, -near});
    }
    std::mt19937 random(7);
    while (values.size() % 256) values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
    const auto count = static_cast<uint32_t>(values.size());
    std::vector<uint32_t> in;
    std::vector<double> hi, lo;
    for (uint32_t i = 0; i < count; ++i) {
      const float other = values[count - 1 - i];
      in.push_back(std::bit_cast<uint32_t>(values[i]));
      in.push_back(std::bit_cast<uint32_t>(other));
      hi.push_back(values[i]), lo.push_back(other);
    }
    for (const bool relu : {false, true})
      checkCodes(format, relu,
                 each("mov.b32 %f, %a; mov.b32 %g, %b; " +
                          toPair(format, std::string("cvt.rn.satfinite") + (relu ? ".relu." : ".") + format.name + ".f32", "%f, %g"),
                      in, count),
                 hi, lo);
  }
}

TEST_CASE("floats around every 8-bit float and every tie round to the nearest 8-bit float") { checkAround(formatRows); }
TEST_CASE("floats around every float of 6 or 4 bits and every tie round to the nearest such float") { checkAround(smallRows); }

TEST_CASE("every float of 6 or 4 bits converts to the half of the same value") {
  for (const Format& format : smallRows) {
    const uint32_t codes = 2 * format.sign;
    std::vector<uint32_t> in(256);
    for (uint32_t i = 0; i < 256; ++i) in[i] = (codes - 1 - i % codes) << format.bits | i % codes;
    for (const bool relu : {false, true}) {
      const std::string text = std::string("cvt.rn") + (relu ? ".relu" : "") + ".f16x2." + format.name;
      const char* const from = format.bits == 4 ? " %d, %y0;" : " %d, %h0;";
      const auto got = each("cvt.u16.u32 %h0, %a; mov.b16 {%y0, %y1}, %h0; " + text + from, in, 256);
      for (uint32_t i = 0; i < 512; ++i) {
        const uint32_t code = i < 256 ? i % codes : codes - 1 - (i - 256) % codes;
        const double half = halfValue(i < 256 ? got[i] & 0xffff : got[i - 256] >> 16), value = valueOf(format, code);
        CAPTURE(text);
        CAPTURE(code);
        CHECK_EQ(std::bit_cast<uint64_t>(half), std::bit_cast<uint64_t>(relu && code & format.sign ? 0.0 : value));
      }
    }
  }
}

TEST_CASE("conversion to ue8m0 rounds to the power of two below or above") {
  std::vector<float> values{0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, 0x1p-127f, 0x1.000002p-127f, 0x1p-126f, 0x1.fffff8p-127f};
  for (const int exponent : {-126, -3, 0, 1, 60, 126, 127})
    for (const float factor : {1.0f, 1.0000001f, 1.5f, 1.9999999f}) values.push_back(std::ldexp(exponent % 2 ? -factor : factor, exponent));
  values.resize(256, 1.0f);
  std::vector<uint32_t> in;
  for (const float value : values) in.push_back(std::bit_cast<uint32_t>(value));
  for (const bool up : {false, true})
    for (const bool finite : {false, true}) {
      const std::string text = std::string(up ? "cvt.rp" : "cvt.rz") + (finite ? ".satfinite" : "") + ".ue8m0x2.f32 %h0, %f, 0f40000000;";
      const auto got = each("mov.b32 %f, %a; " + text + "cvt.u32.u16 %d, %h0;", in, 256);
      for (size_t i = 0; i < values.size(); ++i) {
        const double size = std::fabs(values[i]);
        uint32_t wanted = 0;  // the largest code whose value is at most `size`; up: the smallest whose value is at least `size`
        while (wanted < 254 && std::ldexp(1, static_cast<int>(wanted) + (up ? 0 : 1) - 127) <= size * (1 - (up ? 0x1p-40 : 0))) ++wanted;
        if (std::isnan(size) || (!finite && (up ? size > 0x1p127 : std::isinf(size)))) wanted = 255;
        CAPTURE(text);
        CAPTURE(values[i]);
        CHECK_EQ(got[i], wanted << 8 | 128);
      }
    }
  const auto powers = each("cvt.u16.u32 %h0, %a; cvt.rn.bf16x2.ue8m0x2 %d, %h0;", {[] {
                             std::vector<uint32_t> codes(256);
                             for (uint32_t i = 0; i < 256; ++i) codes[i] = i << 8 | (255 - i);
                             return codes;
                           }()},
                           256);
  for (uint32_t i = 0; i < 255; ++i)
    CHECK_EQ(std::bit_cast<float>(powers[i] & 0xffff0000), std::ldexp(1.0f, static_cast<int>(i) - 127));
  for (uint32_t i = 1; i < 256; ++i)
    CHECK_EQ(std::bit_cast<float>(powers[i] << 16), std::ldexp(1.0f, 128 - static_cast<int>(i)));
  CHECK_EQ(powers[255] >> 16, 0x7fff);
}

TEST_CASE("every 8-bit float becomes the half of its value") {
  std::vector<uint32_t> in(256);
  for (uint32_t i = 0; i < 256; ++i) in[i] = (255 - i) << 8 | i;
  for (const Format& format : formatRows)
    for (const bool relu : {false, true}) {
      const auto got = each(
          std::string("cvt.u16.u32 %h0, %a; cvt.rn") + (relu ? ".relu" : "") + ".f16x2." + format.name + " %d, %h0;",
          in, 256);
      for (uint32_t i = 0; i < 512; ++i) {
        const uint32_t code = i < 256 ? i : 511 - i, half = i < 256 ? got[i] & 0xffff : got[i - 256] >> 16;
        CAPTURE(format.name);
        CAPTURE(code);
        const uint32_t infinity = format.mantissa == 2 ? 0x7c : 0x80;
        if ((code & 0x7f) == infinity)
          CHECK_EQ(half, relu && code & 0x80 ? 0 : 0x7c00 | (code & 0x80) << 8);
        else if ((code & 0x7f) > format.most)
          CHECK_EQ(half, 0x7fff);
        else if (relu && (code & 0x80))
          CHECK_EQ(half, 0);
        else
          CHECK_EQ(std::bit_cast<uint64_t>(halfValue(half)), std::bit_cast<uint64_t>(valueOf(format, code)));
      }
    }
}

TEST_CASE("cvt.pack saturates two values and puts them below a third") {
  std::vector<uint32_t> in;
  const std::vector<int32_t> operands{0,    1,     -1,    2,      -2,     3,     -3,    7,         8,
                                      -8,   -9,    15,    16,     127,    128,   255,   256,       -128,
                                      -129, 32767, 32768, -32768, -32769, 65535, 65536, INT32_MAX, INT32_MIN};
  std::mt19937 random(3);
  for (const int32_t a : operands)
    for (const int32_t b : operands)
      for (const uint32_t v : {static_cast<uint32_t>(a), static_cast<uint32_t>(b), static_cast<uint32_t>(random())})
        in.push_back(v);
  while (in.size() % 768) in.push_back(static_cast<uint32_t>(random()));
  const auto count = static_cast<uint32_t>(in.size() / 3);
  for (const int bits : {2, 4, 8, 16})
    for (const bool isSigned : {false, true}) {
      const int64_t least = isSigned ? -(1 << (bits - 1)) : 0, most = (1 << (bits - isSigned)) - 1;
      std::string type(isSigned ? "s" : "u");
      type += std::to_string(bits);
      const auto got =
          each("cvt.pack.sat." + type + (bits == 16 ? ".s32 %d, %a, %b;" : ".s32.b32 %d, %a, %b, %c;"), in, count);
      const uint64_t mask = (uint64_t{1} << bits) - 1;
      for (uint32_t i = 0; i < count; ++i) {
        const auto clamp = [&](uint32_t v) {
          return static_cast<uint64_t>(std::clamp<int64_t>(static_cast<int32_t>(v), least, most)) & mask;
        };
        const auto wanted = static_cast<uint32_t>((bits == 16 ? 0 : uint64_t{in[3 * i + 2]} << (2 * bits)) |
                                                  clamp(in[3 * i]) << bits | clamp(in[3 * i + 1]));
        CAPTURE(type);
        REQUIRE_EQ(got[i], wanted);
      }
    }
}

TEST_CASE("min and max with relu work in every form that the header uses") {
  std::vector<uint32_t> in;
  for (const int32_t a : {0, 1, -1, 5, -5, INT32_MAX, INT32_MIN, INT32_MIN + 1})
    for (const int32_t b : {0, 1, -1, 5, -5, INT32_MAX, INT32_MIN, INT32_MIN + 1})
      in.insert(in.end(), {static_cast<uint32_t>(a), static_cast<uint32_t>(b)});
  in.resize(512);
  for (const char* text : {"min.s32.relu", "min.relu.s32", "max.s32.relu", "max.relu.s32"}) {
    const auto got = each(std::string(text) + " %d, %a, %b;", in, 256);
    for (size_t i = 0; i < 256; ++i) {
      const auto a = static_cast<int32_t>(in[2 * i]), b = static_cast<int32_t>(in[2 * i + 1]);
      CHECK_EQ(static_cast<int32_t>(got[i]), std::max(0, text[1] == 'i' ? std::min(a, b) : std::max(a, b)));
    }
  }
}

}  // namespace vgpu::emulator
