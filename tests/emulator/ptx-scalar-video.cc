// Scalar video instructions, compared with the PTX ISA's description.
#include "ptx-fixture.h"
#include "ptx-video-forms.h"

namespace vgpu::emulator {

TEST_CASE("scalar video instructions combine bytes, halves and words as the PTX ISA says") {
  const auto described = videoForms();
  const auto forms = scalarVideoForms();
  REQUIRE(described.size() == forms.size());
  constexpr uint32_t threads = 256;  // of those in a recording
  for (size_t i = 0; i < forms.size(); ++i) {
    CAPTURE(forms[i].text);
    const auto inputs = formInputs(forms[i]);
    Device device(formKernel(forms[i]));
    const uint64_t in = device.upload(inputs), out = device.upload(std::vector<uint64_t>(formThreads));
    device("k", {{1, 1, 1}, {threads, 1, 1}}, in, out);
    const auto results = device.download<uint64_t>(out, threads);
    int wrong = 0;
    for (size_t t = 0; t < threads; ++t)
      wrong += static_cast<uint32_t>(results[t]) !=
               described[i].result(static_cast<uint32_t>(inputs[3 * t]), static_cast<uint32_t>(inputs[3 * t + 1]),
                                   static_cast<uint32_t>(inputs[3 * t + 2]));
    CHECK(wrong == 0);
  }
}

TEST_CASE("scalar video instructions take constants, and refuse what the PTX ISA does not allow") {
  const auto run = [](const std::string& instruction) {
    Device device(kernelText(".param .u64 out",
                             ".reg .b32 %r<4>; .reg .b64 %d; ld.param.u64 %d, [out]; mov.b32 %r1, 0x80ff7f01; mov.b32 %r2, 3;\n" +
                                 instruction + "\nst.global.b32 [%d], %r0;"));
    const uint64_t out = device.upload(std::vector<uint32_t>(1));
    device("k", {{1, 1, 1}, {1, 1, 1}}, out);
    return device.download<uint32_t>(out, 1)[0];
  };
  CHECK(run("vadd.s32.s32.s32 %r0, %r1.b2, 5;") == 4);
  CHECK(run("vadd.s32.s32.s32 %r0, %r1.b2, 5, %r2;") == 4);
  CHECK(run("vadd.s32.u32.s32.sat %r0.b1, %r1.b2, 5, 0;") == 0x7f00);
  CHECK(run("vsub.u32.u32.u32.sat %r0.b3, 3, %r1.b1, 0x11223344;") == 0x00223344);
  CHECK(run("vmad.s32.s32.u32.sat %r0, %r1, %r2, -%r2;") == 0x80000000);
  for (const std::string bad :
       {"vadd.s32.s32.s32.add %r0.b0, %r1, %r2, %r2;", "vadd.s32.s32.s32 %r0.b4, %r1, %r2, %r2;",
        "vadd.s32.s32.s32 %r0, -%r1, %r2;", "vadd.s32.s32.s32.add %r0, %r1, %r2;",
        "vset.s32.u32.lt.sat %r0, %r1, %r2;", "vshr.s32.s32.s32.clamp %r0, %r1, %r2;", "vshr.s32.s32.u32 %r0, %r1, %r2;",
        "vmad.u32.u32.u32.po %r0, -%r1, %r2, %r2;", "vmad.u32.u32.u32 %r0, -%r1, %r2, -%r2;",
        "vmad.u32.u32.u32 %r0.b0, %r1, %r2, %r2;", "vadd.u16.u32.u32 %r0, %r1, %r2;", "add.u32 %r0, -%r1, %r2;"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(run(bad), PtxError);
  }
}

}  // namespace vgpu::emulator
