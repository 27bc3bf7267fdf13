// Atomics: every operation and type compared with the host's arithmetic, in both state spaces, from many blocks at once.
#include <algorithm>

#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

struct Case {
  const char* operation;
  const char* type;
  uint64_t initial;
  uint64_t (*expected)(uint64_t initial, const std::vector<uint64_t>& values);
};

template <class T, class F>
uint64_t fold(uint64_t initial, const std::vector<uint64_t>& values, F f) {
  T result = static_cast<T>(initial);
  for (const uint64_t value : values) result = f(result, static_cast<T>(value));
  return static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(result));
}

#define FOLD(T, expression)                                                    \
  [](uint64_t initial, const std::vector<uint64_t>& values) {                  \
    return fold<T>(initial, values, [](T a, T b) -> T { return expression; }); \
  }

const Case cases[] = {
    {"add", "u32", 5, FOLD(uint32_t, a + b)},          {"add", "s32", 5, FOLD(uint32_t, a + b)},
    {"add", "u64", 5, FOLD(uint64_t, a + b)},          {"min", "u32", ~0u, FOLD(uint32_t, std::min(a, b))},
    {"max", "u32", 0, FOLD(uint32_t, std::max(a, b))}, {"min", "s32", 0, FOLD(int32_t, std::min(a, b))},
    {"max", "s32", 0, FOLD(int32_t, std::max(a, b))},  {"min", "u64", ~0ull, FOLD(uint64_t, std::min(a, b))},
    {"max", "u64", 0, FOLD(uint64_t, std::max(a, b))}, {"min", "s64", 0, FOLD(int64_t, std::min(a, b))},
    {"max", "s64", 0, FOLD(int64_t, std::max(a, b))},  {"and", "b32", ~0u, FOLD(uint32_t, a& b)},
    {"or", "b32", 0, FOLD(uint32_t, a | b)},           {"xor", "b32", 9, FOLD(uint32_t, a ^ b)},
    {"and", "b64", ~0ull, FOLD(uint64_t, a& b)},       {"or", "b64", 0, FOLD(uint64_t, a | b)},
    {"xor", "b64", 9, FOLD(uint64_t, a ^ b)},
};

std::string bitsType(std::string_view type) { return std::string("b").append(type.substr(1)); }

}  // namespace

TEST_CASE("atomics of many blocks at once add up") {
  std::mt19937_64 random(3);
  constexpr uint32_t threadCount = 40 * 96;
  std::vector<uint64_t> values(threadCount);
  for (auto& value : values) value = random();
  for (const Case& each : cases)
    for (const std::string kind : {"atom", "red", "atom.shared"}) {
      CAPTURE(each.operation);
      CAPTURE(each.type);
      CAPTURE(kind);
      const std::string type = each.type, bits = bitsType(type), op = std::string(each.operation) + "." + type;
      std::string body = ".reg ." + bits +
                         " %v<3>; .reg .b64 %d<6>; .reg .b32 %r<4>; .reg .pred %p; .shared .align 8 .b64 s;\n"
                         "ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; "
                         "mov.u32 %r2, %ntid.x;\n"
                         "mad.lo.u32 %r1, %r1, %r2, %r0; mul.wide.u32 %d2, %r1, 8; add.s64 %d3, %d0, %d2; ld.global." +
                         bits + " %v0, [%d3];\n";
      if (kind == "atom")
        body += "atom.global." + op + " %v1, [%d1], %v0; ret;";
      else if (kind == "red")
        body += "red.relaxed.gpu." + op + " [%d1], %v0; ret;";
      else
        body += "setp.eq.u32 %p, %r0, 0; ld.global." + bits + " %v2, [%d1+8]; @%p st.shared." + bits +
                " [s], %v2; bar.sync 0;\n"
                "atom.shared." +
                op + " %v1, [s], %v0; bar.sync 0; ld.shared." + bits + " %v1, [s]; @!%p bra OUT; atom.global." + op +
                " %v1, [%d1], %v1; OUT: ret;";
      Device device(kernelText(".param .u64 in, .param .u64 out", body));
      const uint64_t neutral =
          each.operation == std::string("add") || each.operation == std::string("xor") ? 0 : each.initial;
      const uint64_t in = device.upload(values), out = device.upload(std::vector<uint64_t>{each.initial, neutral});
      device.launch.workers = 2;
      device("k", {{40, 1, 1}, {96, 1, 1}}, in, out);
      const uint64_t mask = type.ends_with("32") ? 0xffffffff : ~uint64_t{0};
      CHECK((device.download<uint64_t>(out, 1)[0] & mask) == (each.expected(each.initial, values) & mask));
    }
}

TEST_CASE("each lane's atomic returns the old value") {
  Device device(kernelText(".param .u64 out", R"(
    .reg .b32 %r<8>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; atom.global.add.u32 %r1, [%d0], 1; mul.wide.u32 %d1, %r1, 4; add.s64 %d2, %d0, %d1; st.global.u32 [%d2+16], %r0;
    atom.global.inc.u32 %r2, [%d0+4], 9; atom.global.dec.u32 %r3, [%d0+8], 6; ret;
  )"));
  const uint64_t out = device.upload(std::vector<uint32_t>(4 + 128));
  device("k", {{1, 1, 1}, {128, 1, 1}}, out);
  auto result = device.download<uint32_t>(out, 132);
  CHECK(result[0] == 128);
  CHECK(result[1] == 128 % 10);
  CHECK(result[2] == (7 - 128 % 7) % 7);
  std::sort(result.begin() + 4, result.end());
  for (uint32_t t = 0; t < 128; ++t) CHECK(result[4 + t] == t);
}

TEST_CASE("floating-point atomics add in every format") {
  Device device(kernelText(".param .u64 out", R"(
    .reg .b16 %h<3>; .reg .b32 %r<6>; .reg .f32 %f<3>; .reg .f64 %g<3>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [out];
    atom.global.add.f32 %f1, [%d0], 0f3F000000; red.global.add.f64 [%d0+8], 0d3FD0000000000000;
    mov.b16 %h1, 0x3C00; atom.global.add.noftz.f16 %h2, [%d0+16], %h1; mov.b32 %r1, {%h1, %h1}; atom.global.add.noftz.f16x2 %r2, [%d0+20], %r1;
    mov.b16 %h1, 0x3F80; red.global.add.noftz.bf16 [%d0+24], %h1; mov.b32 %r1, {%h1, %h1}; red.global.add.noftz.bf16x2 [%d0+28], %r1; ret;
  )"));
  const uint64_t out = device.upload(std::vector<uint64_t>(4));
  device("k", {{2, 1, 1}, {64, 1, 1}}, out);
  CHECK(device.download<float>(out, 1)[0] == 64.0f);
  CHECK(device.download<double>(out + 8, 1)[0] == 32.0);
  const auto half = device.download<uint16_t>(out + 16, 8);
  CHECK(half[0] == 0x5800);  // 128
  CHECK(half[2] == 0x5800);
  CHECK(half[3] == 0x5800);
  CHECK(half[4] == 0x4300);
  CHECK(half[6] == 0x4300);
  CHECK(half[7] == 0x4300);
}

TEST_CASE("compare-and-swap and exchange of 16 to 128 bits") {
  Device device(kernelText(".param .u64 out", R"(
    .reg .pred %p; .reg .b16 %h<4>; .reg .b32 %r<4>; .reg .b64 %d<8>; .reg .b128 %q<4>;
    ld.param.u64 %d0, [out]; ld.global.b16 %h0, [%d0];
  AGAIN: add.u16 %h1, %h0, 3; mov.u16 %h2, %h0; atom.global.cas.b16 %h0, [%d0], %h2, %h1; setp.ne.u16 %p, %h0, %h2; @%p bra AGAIN;
    atom.global.cas.b32 %r0, [%d0+4], 77, 88; atom.global.exch.b64 %d1, [%d0+8], 5; atom.global.exch.b32 %r1, [%d0+24], 6;
    mov.b64 %d2, 1; mov.b64 %d3, 2; mov.b128 %q0, {%d2, %d3}; mov.b128 %q1, {%d3, %d2};
    atom.global.cas.b128 %q2, [%d0+32], %q0, %q1; mov.b128 {%d4, %d5}, %q2; atom.global.exch.b128 %q3, [%d0+48], %q0; ret;
  )"));
  const uint64_t out = device.upload(std::vector<uint64_t>{0, 0, 0, 0, 1, 2, 0, 0});
  device("k", {{1, 1, 1}, {32, 1, 1}}, out);
  const auto result = device.download<uint64_t>(out, 8);
  CHECK((result[0] & 0xffff) == 96);
  CHECK((result[0] >> 32) == 0);
  CHECK(result[1] == 5);
  CHECK((result[3] & 0xffffffff) == 6);
  CHECK(result[4] == 2);
  CHECK(result[5] == 1);
  CHECK(result[6] == 1);
  CHECK(result[7] == 2);
}

TEST_CASE("a half is changed by compare-and-swaps of its word, even if the allocation ends in the middle of that word") {
  const auto text = [](const char* load) {
    return kernelText(".param .u64 data", std::string(R"(
      .shared .align 4 .b8 half[2];
      .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<2>; ld.param.u64 %d0, [data];
    )") + load + R"( %r0, [%d0+4];
    AGAIN: add.u32 %r1, %r0, 1; mov.u32 %r2, %r0; atom.global.cas.b32 %r0, [%d0+4], %r2, %r1; setp.ne.u32 %p, %r0, %r2; @%p bra AGAIN;
      atom.shared.add.u32 %r3, [half], 1; ret;
    )");
  };
  Device device(text("ld.relaxed.gpu.global.u32"));
  const uint64_t data = device.upload(std::vector<uint16_t>(3));
  device("k", {{1, 1, 1}, {32, 1, 1}}, data);
  CHECK(device.download<uint16_t>(data, 3) == std::vector<uint16_t>{0, 0, 32});

  Device plain(text("ld.global.u32"));
  const auto fault = plain.tryLaunch("k", {{1, 1, 1}, {32, 1, 1}}, plain.upload(std::vector<uint16_t>(3)));
  REQUIRE(fault);
  CHECK(fault->kind == Fault::Kind::illegalAddress);
}

}  // namespace vgpu::emulator
