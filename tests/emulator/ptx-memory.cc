// State spaces, widths, vectors, initializers, generic addresses.
#include "ptx-fixture.h"

namespace vgpu::emulator {

TEST_CASE("loads extend to the register's width according to signedness, stores truncate") {
  Device device(kernelText(".param .u64 in, .param .u64 out", R"(
    .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %d<12>;
    ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out];
    mov.u32 %r0, %tid.x; mul.wide.u32 %d2, %r0, 8; add.s64 %d3, %d0, %d2; mul.wide.u32 %d2, %r0, 64; add.s64 %d4, %d1, %d2;
    ld.global.u8 %h0, [%d3]; st.global.u16 [%d4], %h0;
    ld.global.s8 %r1, [%d3]; st.global.u32 [%d4+8], %r1;
    ld.global.s16 %d5, [%d3]; st.global.u64 [%d4+16], %d5;
    ld.global.u16 %d5, [%d3+2]; st.global.u64 [%d4+24], %d5;
    ld.global.s32 %d5, [%d3+4]; st.global.u64 [%d4+32], %d5;
    ld.global.v2.u16 {%h1, %h2}, [%d3]; mov.b32 %r2, {%h2, %h1}; st.global.u32 [%d4+40], %r2;
    ld.global.v4.s8 {%r3, %r4, %r5, %r6}, [%d3]; add.s32 %r3, %r3, %r4; add.s32 %r3, %r3, %r5; add.s32 %r3, %r3, %r6; st.global.s16 [%d4+48], %r3;
    ld.global.u64 %d3, [%d3]; st.global.u8 [%d4+56], %d3; ret;
  )"));
  std::mt19937_64 random(1);
  std::vector<uint64_t> in(96);
  for (auto& value : in) value = random();
  const uint64_t input = device.upload(in), out = device.upload(std::vector<uint64_t>(96 * 8));
  device("k", {{1, 1, 1}, {96, 1, 1}}, input, out);
  const auto result = device.download<uint64_t>(out, 96 * 8);
  for (size_t t = 0; t < 96; ++t) {
    const uint64_t* r = &result[t * 8];
    const auto byte = [&](int k) { return static_cast<int8_t>(in[t] >> (8 * k)); };
    CHECK(r[0] == (in[t] & 0xff));
    CHECK(r[1] == static_cast<uint32_t>(static_cast<int8_t>(in[t])));
    CHECK(r[2] == static_cast<uint64_t>(static_cast<int16_t>(in[t])));
    CHECK(r[3] == (in[t] >> 16 & 0xffff));
    CHECK(r[4] == static_cast<uint64_t>(static_cast<int32_t>(in[t] >> 32)));
    CHECK(r[5] == ((in[t] >> 16 & 0xffff) | (in[t] & 0xffff) << 16));
    CHECK(r[6] == static_cast<uint16_t>(byte(0) + byte(1) + byte(2) + byte(3)));
    CHECK(r[7] == (in[t] & 0xff));
  }
}

TEST_CASE("variables have their initial values, including addresses of variables and functions") {
  Device device(kernelText(".param .u64 out", "ret;", R"(
    .global .align 4 .b8 bytes[8] = {1, 2, 255};
    .global .u32 words[2][2] = {{1, 2}, {3, 4}};
    .global .f32 half = 0f3F000000;
    .global .f64 numbers[2] = {1.5, -2};
    .const .align 8 .u64 pointer = generic(words)+8;
    .global .u64 table[3] = {f, 0, bytes+2};
    .global .attribute(.managed) .s32 shared_with_host = -7;
    .global .b8 parts[8] = {0xFF(words), 0xFF00(words), 0xFF0000(words), 0xFF000000(words), 0xFF00000000(words), 0xFF0000000000(words), 0, 0};
    .func f() { ret; }
  )"));
  const auto at = [&](const char* name, int offset = 0) {
    return device.download<uint64_t>(device.variable(name) + static_cast<uint64_t>(offset), 1)[0];
  };
  CHECK(at("bytes") == 0xff0201);
  CHECK(at("words", 8) == 0x400000003);
  CHECK((at("half") & 0xffffffff) == 0x3f000000);
  CHECK(at("numbers") == 0x3ff8000000000000);
  CHECK(at("numbers", 8) == 0xc000000000000000);
  CHECK(at("pointer") == device.variable("words") + 8);
  CHECK(at("table", 16) == device.variable("bytes") + 2);
  CHECK(at("table") - 1 < 64);  // the number of a function
  CHECK(device.download<uint32_t>(device.variable("shared_with_host"), 1)[0] == 0xfffffff9);
  CHECK(at("parts") == device.variable("words"));
  for (const Variable& variable : device.module->variables()) {
    CHECK(variable.managed == (variable.name == "shared_with_host"));
    CHECK((variable.space == VariableSpace::constant) == (variable.name == "pointer"));
  }
}

TEST_CASE("shared and local variables have generic addresses that isspacep distinguishes") {
  Device device(kernelText(".param .u64 out", R"(
    .shared .align 8 .b8 s[512]; .local .align 8 .b8 l[64];
    .reg .pred %p<9>; .reg .b32 %r<16>; .reg .b64 %d<16>;
    ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1;
    cvta.shared.u64 %d3, s; add.s64 %d3, %d3, %d1;
    mov.u64 %d4, l; cvta.local.u64 %d4, %d4;
    st.u32 [%d3], %r0; add.u32 %r1, %r0, 50; st.u32 [%d4+4], %r1;
    bar.sync 0;
    cvta.to.shared.u64 %d5, %d3; cvt.u32.u64 %r2, %d5; ld.shared.u32 %r3, [%r2];
    cvta.to.local.u64 %d6, %d4; ld.local.u32 %r4, [%d6+4]; ld.local.u32 %r12, [l+4];
    isspacep.shared %p1, %d3; isspacep.local %p2, %d4; isspacep.global %p3, %d2; isspacep.global %p4, %d3; isspacep.shared %p5, %d4;
    mov.u64 %d7, c; cvta.const.u64 %d7, %d7; isspacep.const %p6, %d7; ld.u32 %r5, [%d7]; ld.const.u32 %r6, [c];
    selp.u32 %r7, 1, 0, %p1; selp.u32 %r8, 2, 0, %p2; selp.u32 %r9, 4, 0, %p3; selp.u32 %r10, 8, 0, %p4; selp.u32 %r11, 16, 0, %p5; 
    add.u32 %r7, %r7, %r8; add.u32 %r7, %r7, %r9; add.u32 %r7, %r7, %r10; add.u32 %r7, %r7, %r11; selp.u32 %r8, 32, 0, %p6; add.u32 %r7, %r7, %r8;
    add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5; add.u32 %r3, %r3, %r6; sub.u32 %r12, %r12, %r1; add.u32 %r3, %r3, %r12; mad.lo.u32 %r3, %r7, 1000, %r3; st.global.u32 [%d2], %r3; ret;
  )",
                           ".const .u32 c = 5;"));
  const uint64_t out = device.upload(std::vector<uint32_t>(64));
  device("k", {{1, 1, 1}, {64, 1, 1}}, out);
  const auto result = device.download<uint32_t>(out, 64);
  for (uint32_t t = 0; t < 64; ++t) CHECK(result[t] == 2 * t + 60 + 39000);
}

TEST_CASE("extern shared memory begins after the static variables, with the size given at the launch") {
  Device device(kernelText(".param .u64 out", R"(
    .shared .align 4 .b8 fixed[20];
    .reg .b32 %r<8>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1;
    mov.u32 %r1, fixed; mov.u32 %r2, dynamic; sub.u32 %r3, %r2, %r1;
    shl.b32 %r4, %r0, 2; add.u32 %r5, %r2, %r4; st.shared.u32 [%r5], %r3; bar.sync 0; ld.shared.u32 %r6, [%r5];
    ld.shared.u32 %r7, [dynamic+4]; add.u32 %r6, %r6, %r7; mov.u32 %r7, %dynamic_smem_size; add.u32 %r6, %r6, %r7;
    st.global.u32 [%d2], %r6; ret;
  )",
                           ".extern .shared .align 16 .b8 dynamic[];"));
  const uint64_t out = device.upload(std::vector<uint32_t>(32));
  device.launch.dynamicSharedBytes = 128;
  device("k", {{2, 1, 1}, {32, 1, 1}}, out);
  for (const uint32_t value : device.download<uint32_t>(out, 32)) CHECK(value == 32 + 32 + 128);
  CHECK(attributesOf(*device.module->findKernel("k")).staticSharedBytes == 20);
  device.launch.dynamicSharedBytes = 124;
  CHECK(device.tryLaunch("k", {{1, 1, 1}, {32, 1, 1}}, out)->kind == Fault::Kind::illegalAddress);
}

TEST_CASE("every block has reserved shared memory, in which cooperative groups exchange data between warps") {
  Device device(kernelText(".param .u64 out", R"(
    .shared .align 4 .b8 own[4];
    .reg .b32 %r<8>; .reg .b64 %d<8>;
    ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1;
    mov.u32 %r1, %reserved_smem_offset_1; cvt.u64.u32 %d3, %r1; cvta.shared.u64 %d3, %d3;
    and.b32 %r2, %r0, 63; mul.wide.u32 %d4, %r2, 4; add.s64 %d4, %d3, %d4;
    st.u32 [%d4], %r0; st.shared.u32 [own], 7; bar.sync 0; ld.u32 %r3, [%d3+252]; ld.shared.u32 %r4, [own]; add.u32 %r3, %r3, %r4;
    mov.u32 %r5, %reserved_smem_offset_begin; mov.u32 %r6, %reserved_smem_offset_end; sub.u32 %r6, %r6, %r1; min.u32 %r6, %r6, 288;
    add.u32 %r3, %r3, %r6; st.global.u32 [%d2], %r3; ret;
  )"));
  const uint64_t out = device.upload(std::vector<uint32_t>(64));
  device("k", {{2, 1, 1}, {64, 1, 1}}, out);
  for (const uint32_t value : device.download<uint32_t>(out, 64)) CHECK(value == 63 + 7 + 288);
}

TEST_CASE("kernel parameters are read at their offsets, by address too") {
  Device device(kernelText(".param .u8 a, .param .align 8 .b8 s[24], .param .f32 f, .param .u64 out", R"(
    .reg .b16 %h<2>; .reg .b32 %r<8>; .reg .f32 %f<2>; .reg .b64 %d<8>;
    ld.param.u64 %d0, [out]; ld.param.u8 %h0, [a]; cvt.u32.u16 %r0, %h0; ld.param.f32 %f0, [f]; cvt.rzi.u32.f32 %r1, %f0;
    ld.param.v2.u32 {%r2, %r3}, [s+8];
    mov.u32 %r4, %tid.x; mul.wide.u32 %d1, %r4, 4; mov.b64 %d2, s; add.s64 %d3, %d2, %d1; ld.param.u32 %r5, [%d3];
    cvta.param.u64 %d4, %d3; ld.u32 %r6, [%d4]; sub.u32 %r6, %r6, %r5;
    add.u32 %r0, %r0, %r1; add.u32 %r0, %r0, %r2; add.u32 %r0, %r0, %r3; add.u32 %r0, %r0, %r5; add.u32 %r0, %r0, %r6;
    add.s64 %d5, %d0, %d1; st.global.u32 [%d5], %r0; ret;
  )"));
  struct {
    uint32_t v[6];
  } s{{1, 2, 3, 4, 5, 6}};
  const uint64_t out = device.upload(std::vector<uint32_t>(6));
  device("k", {{1, 1, 1}, {6, 1, 1}}, uint8_t{200}, s, 9.5f, out);
  const auto result = device.download<uint32_t>(out, 6);
  for (uint32_t t = 0; t < 6; ++t) CHECK(result[t] == 200 + 9 + 7 + t + 1);
}

TEST_CASE("alloca allocates on the thread's stack, and stackrestore frees it") {
  Device device(kernelText(".param .u64 out", R"(
    .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<8>;
    ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1; mov.u32 %r3, 0;
  LOOP:
    stacksave.u64 %d3; add.u32 %r1, %r0, 8; cvt.u64.u32 %d4, %r1; alloca.u64 %d5, %d4, 16;
    st.local.u32 [%d5], %r0; st.local.u32 [%d5+4], %r3; ld.local.u32 %r2, [%d5]; stackrestore.u64 %d3;
    add.u32 %r3, %r3, 1; setp.lt.u32 %p, %r3, 5000; @%p bra LOOP;
    st.global.u32 [%d2], %r2; ret;
  )"));
  const uint64_t out = device.upload(std::vector<uint32_t>(32));
  device("k", {{1, 1, 1}, {32, 1, 1}}, out);
  const auto result = device.download<uint32_t>(out, 32);
  for (uint32_t t = 0; t < 32; ++t) CHECK(result[t] == t);
}

TEST_CASE("malloc returns separate memory to each thread, free returns it, and the heap lies in device memory") {
  Device device(kernelText(".param .u64 out, .param .u64 bytes", R"(
    .reg .b32 %r<4>; .reg .b64 %d<8>; .reg .pred %p;
    ld.param.u64 %d0, [out]; ld.param.u64 %d6, [bytes]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 8; add.s64 %d2, %d0, %d1;
    { .param .b64 a; .param .b64 q; st.param.b64 [a], %d6; call.uni (q), malloc, (a); ld.param.b64 %d3, [q]; }
    st.global.u64 [%d2], %d3; setp.eq.s64 %p, %d3, 0; @%p ret;
    st.u32 [%d3], %r0; and.b32 %r1, %r0, 1; setp.eq.u32 %p, %r1, 0; @%p ret;
    { .param .b64 a; st.param.b64 [a], %d3; call.uni free, (a); }
    ret;
  )",
                           ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);"));
  const uint64_t out = device.upload(std::vector<uint64_t>(64));
  device("k", {{1, 1, 1}, {64, 1, 1}}, out, uint64_t{40});
  CHECK(device.download<uint64_t>(out, 1)[0] == 0);  // there is no heap
  device.launch.heapBytes = 1 << 14;
  device.launch.heapBase = device.memory.allocate(device.launch.heapBytes);
  for (int round = 0; round < 3; ++round) device("k", {{1, 1, 1}, {64, 1, 1}}, out, uint64_t{40});
  const auto pointers = device.download<uint64_t>(out, 64);
  for (uint32_t t = 0; t < 64; t += 2) {
    CHECK(pointers[t] % 16 == 0);
    CHECK(device.download<uint32_t>(pointers[t], 1)[0] == t);
  }
  device("k", {{1, 1, 1}, {1, 1, 1}}, out, uint64_t{1 << 20});
  CHECK(device.download<uint64_t>(out, 1)[0] == 0);
}

}  // namespace vgpu::emulator
