// Errors of kernels are reported with thread, line and cause.
#include <atomic>
#include <thread>

#include "ptx-fixture.h"

namespace vgpu::emulator {
namespace {

constexpr const char* faultProlog = R"(.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<8>;
  mov.u32 %r0, %tid.x; ld.param.u64 %d0, [out]; mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1;
)";

Fault faultOf(const std::string& body, Device::Shape shape = {}, const std::string& before = "") {
  Device device(kernelText(".param .u64 out", faultProlog + body, before));
  const uint64_t out = device.upload(std::vector<uint32_t>(32));
  device.launch.maxInstructions = 20'000'000;
  const auto fault = device.tryLaunch("k", shape, out);
  REQUIRE(fault);
  return *fault;
}

bool says(const Fault& fault, std::string_view what) {
  CAPTURE(fault.report);
  const bool found = fault.report.find(what) != std::string::npos;
  CHECK(found);
  return found;
}

}  // namespace

TEST_CASE("an access out of bounds names kernel, block, thread, line and address") {
  const Fault fault =
      faultOf("\n\n.loc 1 77 3\nst.global.u32 [%d2+96], %r0; ret;", {{3, 1, 1}, {32, 1, 1}}, ".file 1 \"some.cu\"");
  CHECK(fault.kind == Fault::Kind::illegalAddress);
  says(fault, "kernel k, block (0, 0, 0), thread (8, 0, 0)");
  says(fault, "some.cu:77");
  says(fault, "write of 4 bytes to 0x");
  says(fault, "no allocation is near it");
}

TEST_CASE("a failed assertion is reported in the format of the programming guide") {
  const Fault fault = faultOf(R"(setp.ne.u32 %p0, %r0, 5; @%p0 ret;
    mov.u64 %d3, what; cvta.global.u64 %d3, %d3; mov.u64 %d4, file; cvta.global.u64 %d4, %d4;
    mov.u64 %d5, function; cvta.global.u64 %d5, %d5;
    { .param .b64 a; st.param.b64 [a], %d3; .param .b64 b; st.param.b64 [b], %d4; .param .b32 c; st.param.b32 [c], 19;
      .param .b64 d; st.param.b64 [d], %d5; .param .b64 e; st.param.b64 [e], 1; call.uni __assertfail, (a, b, c, d, e); } ret;)",
                              {{1, 1, 1}, {8, 1, 1}}, R"(
    .extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
    .global .align 1 .b8 what[4] = {97, 62, 98, 0}; .global .align 1 .b8 file[5] = {116, 46, 99, 117, 0};
    .global .align 1 .b8 function[4] = {102, 40, 41, 0};)");
  CHECK(fault.kind == Fault::Kind::assertion);
  says(fault, "t.cu:19: f(): block: [0,0,0], thread: [5,0,0] Assertion `a>b` failed.");
}

TEST_CASE("misaligned, read-only, and out-of-bounds shared and local accesses are different kinds of faults") {
  CHECK(faultOf("ld.global.u32 %r1, [%d2+2]; ret;").kind == Fault::Kind::misalignedAddress);
  CHECK(faultOf("ld.global.v2.u32 {%r1, %r2}, [%d0+4]; ret;").kind == Fault::Kind::misalignedAddress);
  says(faultOf(".shared .b32 s; mov.u32 %r1, s; st.shared.u32 [%r1+4], %r0; ret;"),
       "shared memory offset 0x4 of 4 bytes");
  CHECK(faultOf("mov.u64 %d3, 1000000; st.local.u32 [%d3], %r0; ret;").kind == Fault::Kind::illegalAddress);
  CHECK(faultOf("mov.u64 %d3, 0; ld.u32 %r1, [%d3]; ret;").kind == Fault::Kind::illegalAddress);
  CHECK(faultOf("mov.u64 %d3, 0; atom.add.u32 %r1, [%d3], 1; ret;").kind == Fault::Kind::illegalAddress);
  Device device(kernelText(".param .u64 out", std::string(faultProlog) + "st.global.u32 [%d2], 1; ret;"));
  const uint64_t out = device.upload(std::vector<uint32_t>(32));
  device.memory.protect(out);
  CHECK(device.tryLaunch("k", {}, out)->kind == Fault::Kind::illegalAddress);
}

TEST_CASE("a vector that is partly outside of shared memory may be read, as on hardware, but not written") {
  const std::string begin = ".shared .align 16 .b8 s[20]; .reg .b32 %v<4>; mov.u32 %r1, s; st.shared.u32 [%r1+16], 7; bar.sync 0;";
  const std::string reads = "ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%r1+16]; st.global.u32 [%d2], %v0; ret;";
  Device device(kernelText(".param .u64 out", faultProlog + begin + reads));
  const uint64_t out = device.upload(std::vector<uint32_t>(32));
  for (const uint32_t checks : {0u, static_cast<uint32_t>(checkRaces)}) {
    device.launch.checks = checks;
    CHECK(!device.tryLaunch("k", {}, out));
    CHECK(device.download<uint32_t>(out, 1)[0] == 7);
  }
  says(faultOf(begin + "ld.shared.v4.u32 {%v0, %v1, %v2, %v3}, [%r1+32]; ret;"), "shared memory offset 0x20 of 20 bytes");
  says(faultOf(begin + "st.shared.v4.u32 [%r1+16], {%v0, %v1, %v2, %v3}; ret;"), "shared memory offset 0x10 of 20 bytes");
  says(faultOf(begin + "ld.shared.u32 %v0, [%r1+20]; ret;"), "shared memory offset 0x14 of 20 bytes");
}

TEST_CASE("trap, assert, and a call to an invalid function address are faults") {
  CHECK(faultOf("setp.eq.u32 %p0, %r0, 9; @%p0 trap; ret;").kind == Fault::Kind::trap);
  says(faultOf("setp.eq.u32 %p0, %r0, 9; @%p0 trap; ret;"), "thread (9, 0, 0)");
  const Fault call = faultOf("mov.u64 %d3, 4096; { P: .callprototype _ (); call %d3, (), P; } ret;");
  CHECK(call.kind == Fault::Kind::invalidPc);
  says(call, "0x1000");
}

TEST_CASE("an instruction for multicast objects is a fault when it is executed, not before") {
  const std::string uses = "multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%r1, %r2, %r3, %r1}, [%d2]; multimem.red.global.add.u32 [%d2], %r1; ";
  const Fault fault = faultOf("setp.eq.u32 %p0, %r0, 9; @%p0 " + uses + "ret;");
  CHECK(fault.kind == Fault::Kind::illegalAddress);
  says(fault, "multicast");
  Device device(kernelText(".param .u64 out", std::string(faultProlog) + "setp.eq.u32 %p0, %r0, 99; @!%p0 bra E; " + uses + "E: st.global.u32 [%d2], 7; ret;"));
  const uint64_t out = device.upload(std::vector<uint32_t>(32));
  CHECK(!device.tryLaunch("k", {}, out));
  CHECK(device.download<uint32_t>(out, 1)[0] == 7);
}

TEST_CASE("endless recursion overflows the stack") {
  const Fault fault =
      faultOf("{ call.uni f; } ret;", {}, ".func f() { .local .b32 x; .reg .b64 %d; mov.u64 %d, x; call.uni f; ret; }");
  CHECK(fault.kind == Fault::Kind::stackOverflow);
  says(fault, "'f'");
}

TEST_CASE("an endless kernel is stopped by its instruction budget or by its launcher") {
  CHECK(faultOf("L: bra L;").kind == Fault::Kind::timeout);
  Device device(kernelText("", "L: bra L;"));
  std::atomic<bool> cancelled{false};
  device.launch.cancelled = &cancelled;
  std::thread canceller([&] { cancelled = true; });
  const auto fault = device.tryLaunch("k", {});
  canceller.join();
  REQUIRE(fault);
  CHECK(fault->kind == Fault::Kind::timeout);
}

TEST_CASE("a barrier that some threads never reach is reported instead of hanging") {
  const Fault fault =
      faultOf("setp.lt.u32 %p0, %r0, 32; @%p0 bra A; bar.sync 1; ret; A: bar.sync 2; ret;", {{1, 1, 1}, {64, 1, 1}});
  CHECK(fault.kind == Fault::Kind::divergentBarrier);
  says(fault, "barrier");
  CHECK(faultOf("setp.lt.u32 %p0, %r0, 5; @%p0 bra A; bar.sync 0; ret; A: bar.warp.sync -1; ret;").kind ==
        Fault::Kind::divergentBarrier);
}

TEST_CASE("launches that the device cannot hold are refused") {
  Device device(kernelText("", "ret;"));
  CHECK(device.tryLaunch("k", {{1, 1, 1}, {2000, 1, 1}})->kind == Fault::Kind::notSupported);
  device.launch.dynamicSharedBytes = 300 * 1024;
  CHECK(device.tryLaunch("k", {})->kind == Fault::Kind::notSupported);
}

TEST_CASE("invalid or unknown text is refused with its line, function and instruction") {
  const auto error = [](const std::string& body, const std::string& before = "") {
    try {
      Device device(kernelText("", body, before));
      device.module->findKernel("k");
    } catch (const PtxError& e) {
      CHECK(e.line > 0);
      return std::make_pair(e.kind, std::string(e.what()));
    }
    FAIL("accepted");
    return std::make_pair(PtxError::Kind::invalid, std::string());
  };
  const auto unknown = error("frobnicate.u32 %r1, %r2;\nret;");
  CHECK(unknown.first == PtxError::Kind::unsupported);
  CHECK(unknown.second.find("frobnicate.u32") != std::string::npos);
  CHECK(unknown.second.find("line 7") != std::string::npos);
  CHECK(unknown.second.find("'k'") != std::string::npos);
  CHECK(error("bra NOWHERE;").first == PtxError::Kind::invalid);
  CHECK(error("mov.u32 %r1, 5;").second.find("%r1") != std::string::npos);
  CHECK(error(".reg .b32 %r; add.s32 %r, %r;").first == PtxError::Kind::invalid);
  CHECK(error(".reg .b32 %r; mov.u32 %r, %no.such;").first == PtxError::Kind::invalid);
  CHECK(error("{ ret;").first == PtxError::Kind::invalid);
  CHECK_THROWS_WITH(Module::parse(kernelText("", "call.uni gone;", ".extern .func gone();"), 90),
                    "ptxas fatal   : Unresolved extern function 'gone'");
  CHECK(Module::parse(kernelText("", "ret;", ".extern .func gone();"), 90));
  CHECK(error("ret;", ".extern .global .u32 gone;").first == PtxError::Kind::unresolved);
  CHECK(error("ret;", ".global .u64 x = gone;").first == PtxError::Kind::unresolved);
  CHECK_THROWS_AS(Module::parse("hello", 90), PtxError);
  CHECK_THROWS_AS(Module::parse(".version 9.0\n.target sm_90\n", 75), PtxError);
}

TEST_CASE("a function that cannot be decoded is refused when it is called through its address, not before") {
  Device device(kernelText(".param .u32 call", R"(
    .reg .pred %p; .reg .b32 %r; .reg .b64 %d; ld.param.u32 %r, [call]; setp.eq.u32 %p, %r, 0; @%p ret;
    ld.global.u64 %d, [table]; { P: .callprototype _ (); call %d, (), P; } ret;
  )",
                           ".func strange() { frobnicate; ret; }\n.global .u64 table = strange;"));
  device("k", {}, 0u);
  const auto fault = device.tryLaunch("k", {}, 1u);
  REQUIRE(fault);
  CHECK(fault->kind == Fault::Kind::notSupported);
  says(*fault, "frobnicate");
}

TEST_CASE("printf formats as the host's does, in block order") {
  Device device(kernelText("", R"(
    .local .align 8 .b8 args[64]; .reg .b32 %r<3>; .reg .b64 %d<4>; .reg .pred %p;
    mov.u32 %r0, %ctaid.x; mov.u64 %d0, args; cvta.local.u64 %d1, %d0;
    st.local.u32 [%d0], %r0; st.local.u64 [%d0+8], 0xfffffffffffffffe; st.local.f64 [%d0+16], 0d4004000000000000; st.local.u64 [%d0+24], word; st.local.u32 [%d0+32], 65;
    { .param .b64 a; .param .b64 b; .param .b32 q; st.param.b64 [a], text; st.param.b64 [b], %d1; call.uni (q), vprintf, (a, b); ld.param.b32 %r1, [q]; }
    ret;
  )",
                           ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
                           ".global .align 1 .b8 word[3] = {104, 105, 0};\n"
                           ".global .align 1 .b8 text[30] = "
                           "{37,48,51,100,32,37,108,108,100,32,37,46,49,102,32,37,115,32,37,99,32,37,37,10,0};"));
  device.launch.workers = 2;
  device("k", {{12, 1, 1}, {1, 1, 1}});
  std::string expected;
  for (int b = 0; b < 12; ++b) expected += (b < 10 ? "00" : "0") + std::to_string(b) + " -2 2.5 hi A %\n";
  CHECK(device.output == expected);
}

}  // namespace vgpu::emulator
