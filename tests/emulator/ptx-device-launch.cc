// Launches from kernels: their order, limits and errors.
#include <atomic>
#include <numeric>
#include <thread>

#include "device-launch-runtime.h"

namespace vgpu::emulator {
namespace {

using namespace vgpu::test;

constexpr int tailLaunch = 3, fireAndForget = 4;
constexpr Device::Shape oneThread{{1, 1, 1}, {1, 1, 1}};

std::vector<uint32_t> notesOf(const std::string& kernels, uint32_t what = 0, Device::Shape shape = oneThread) {
  LaunchingDevice device(kernels);
  device("k", shape, device.notes, what);
  return device.noted();
}

Fault faultOfLaunch(const std::string& kernels) {
  LaunchingDevice device(kernels);
  const auto fault = device.tryLaunch("k", oneThread, device.notes, uint32_t{0});
  REQUIRE(fault);
  return *fault;
}

void mentions(const Fault& fault, std::string_view what) {
  CAPTURE(fault.report);
  const bool found = fault.report.find(what) != std::string::npos;
  CHECK(found);
}

// while (%r0 != 0) { body; --%r0; }
std::string repeat(const std::string& body) {
  return "L: setp.eq.u32 %p, %r0, 0; @%p bra E;\n" + body + "sub.u32 %r0, %r0, 1; bra L;\nE:\n";
}

}  // namespace

TEST_CASE("children run when the parent's blocks have ended, each followed by its descendants, and then tail launches run") {
  const std::string below = launchingKernel("below", launchOf("note", "9", tailLaunch) + launchOf("note", "8") + takeNote("7"));
  CHECK(notesOf(below + launchingKernel("k", launchOf("note", "20", tailLaunch) + launchOf("below", "0", tailLaunch) +
                                                 launchOf("note", "21", tailLaunch) + launchOf("note", "1") +
                                                 launchOf("below", "0") + launchOf("note", "2", fireAndForget) +
                                                 takeNote("0"))) == std::vector<uint32_t>{0, 1, 7, 8, 9, 2, 20, 7, 8, 9, 21});
}

TEST_CASE("every thread of every block launches, on several host threads, and no launch is lost") {
  LaunchingDevice device(launchingKernel(
      "k", "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r1, %r2, 64, %r1;" + launchOf("note", "%r1")));
  device.launch.workers = 4;
  device("k", {{30, 1, 1}, {64, 1, 1}}, device.notes, uint32_t{0});
  std::vector<uint32_t> notes = device.noted();
  std::ranges::sort(notes);
  std::vector<uint32_t> expected(30 * 64);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(notes == expected);
}

TEST_CASE("kernels can launch themselves thousands of times, as children and as tail launches") {
  for (const int stream : {0, tailLaunch})
    CHECK(notesOf(launchingKernel("k", takeNote("%r0") + "setp.eq.u32 %p, %r0, 0; @%p ret; sub.u32 %r1, %r0, 1;" +
                                           launchOf("k", "%r1", stream)),
                  10000)
              .size() == 10001);
}

TEST_CASE("grids that wait for their descendants are kept in a list, however many there are") {
  std::vector<uint32_t> expected(2001, 1);
  expected[0] = 2;
  const std::string deep = "setp.eq.u32 %p, %r0, 0; @%p bra E; sub.u32 %r1, %r0, 1;" + launchOf("k", "%r1") +
                           launchOf("note", "1", tailLaunch) + "ret; E:" + takeNote("2");
  CHECK(notesOf(launchingKernel("k", deep), 2000) == expected);
}

TEST_CASE("at most as many tail launches are pending as the limit allows") {
  LaunchingDevice device(launchingKernel("k", repeat(launchOf("note", "5", tailLaunch) + takeNote("%r9"))));
  device.runtime.pendingLaunches = 3;
  device("k", oneThread, device.notes, uint32_t{5});
  CHECK(device.noted() == std::vector<uint32_t>{0, 0, 0, 69, 69, 5, 5, 5});
}

TEST_CASE("tail launches that have begun no longer count") {
  LaunchingDevice device(launchingKernel("k", takeNote("%r0") + "setp.eq.u32 %p, %r0, 0; @%p ret; sub.u32 %r1, %r0, 1;" +
                                                  launchOf("k", "%r1", tailLaunch) + takeNote("%r9")));
  device.runtime.pendingLaunches = 1;
  device("k", oneThread, device.notes, uint32_t{3});
  CHECK(device.noted() == std::vector<uint32_t>{3, 0, 2, 0, 1, 0, 0});
}

TEST_CASE("children do not have this limit, but one that bounds memory") {
  LaunchingDevice device(launchingKernel("empty", "") +
                         launchingKernel("k", repeat(launchOf("empty", "0") + "max.u32 %r1, %r1, %r9;") + takeNote("%r1") +
                                                  callOf("__cudaCDP2GetLastError") + takeNote("%r9")));
  device.runtime.pendingLaunches = 3;
  device("k", oneThread, device.notes, uint32_t{5000});
  CHECK(device.noted() == std::vector<uint32_t>{0, 0});
  device("k", oneThread, device.notes, uint32_t{(1 << 17) + 1});
  CHECK(device.noted() == std::vector<uint32_t>{0, 0, 1000, 69});  // no buffer, and the error
}

TEST_CASE("a launch that is not possible leaves its error for the thread to read") {
  const std::string bad = "mov.u32 %r1, %tid.x; setp.ne.u32 %p, %r1, 1; @%p bra B;" + launchOf("note", "0", 0, 2000) +
                          "B: setp.ne.u32 %p, %r1, 2; @%p bra C; mov.u64 %d1, 24;" + launchOf("%d1", "0") + "C:";
  const std::string ask = callOf("__cudaCDP2PeekAtLastError") + "mov.u32 %r2, %r9;" + callOf("__cudaCDP2GetLastError") +
                          "mov.u32 %r3, %r9;" + callOf("__cudaCDP2GetLastError") +
                          "mul.lo.u32 %r2, %r2, 1000; add.u32 %r2, %r2, %r3; mul.lo.u32 %r2, %r2, 1000;"
                          "add.u32 %r2, %r2, %r9;" +
                          takeNote("%r2");
  std::vector<uint32_t> notes = notesOf(launchingKernel("k", bad + ask), 0, {{1, 1, 1}, {3, 1, 1}});
  std::ranges::sort(notes);
  CHECK(notes == std::vector<uint32_t>{0, 9'009'000, 98'098'000});  // 24 is the address of a function that is not a kernel
}

TEST_CASE("a parameter buffer can be launched once, and has a maximum size") {
  const auto buffer = [](const std::string& use) {
    return launchingKernel("k",
                           "mov.u64 %d1, note; { .param .b64 k1; .param .b32 n1; .param .b64 r1; st.param.b64 [k1], %d1;"
                           "st.param.b32 [n1], 1; call.uni (r1), bufferFor, (k1, n1); ld.param.b64 %d2, [r1]; }\n" +
                               use);
  };
  const std::string launchIt =
      "{ .param .b64 p1; .param .b64 s1; .param .b32 r1; st.param.b64 [p1], %d2; st.param.b64 [s1], 0;"
      "call.uni (r1), launchBuffer, (p1, s1); ld.param.b32 %r9, [r1]; }\n";
  CHECK(notesOf(buffer("st.u64 [%d2], %d0; st.u32 [%d2+8], 5;" + launchIt)) == std::vector<uint32_t>{5});
  CHECK(notesOf(buffer("")).empty());
  mentions(faultOfLaunch(buffer("st.u64 [%d2], %d0;" + launchIt + launchIt)), "a launch with parameter buffer 0x5000000000000");
  mentions(faultOfLaunch(buffer("mov.u64 %d2, 4096;" + launchIt)), "a launch with parameter buffer 0x1000");
  mentions(faultOfLaunch(buffer("add.u64 %d2, %d2, 8;" + launchIt)), "which this grid did not get");
  const Fault past = faultOfLaunch(buffer("st.u64 [%d2+8], %d0;"));
  CHECK(past.kind == Fault::Kind::illegalAddress);
  mentions(past, "offset 0x8 of the 12 bytes of a launch's parameters");
  CHECK(notesOf(buffer("mov.u64 %d2, 0;" + launchIt + takeNote("%r9"))) == std::vector<uint32_t>{1});
}

TEST_CASE("the first versions of the two calls take kernel and shape at the launch") {
  const std::string declared =
      ".extern .func (.param .b64 r) __cudaCDP2GetParameterBuffer (.param .b64 a, .param .b64 n);\n"
      ".extern .func (.param .b32 r) __cudaCDP2LaunchDevice (.param .b64 k, .param .b64 p, .param .align 4 .b8 g[12],\n"
      ".param .align 4 .b8 b[12], .param .b32 n, .param .b64 s);\n";
  const auto buffer = [](int bytes) {
    return "{ .param .b64 a1; .param .b64 n1; .param .b64 r1; st.param.b64 [a1], 8; st.param.b64 [n1], " + std::to_string(bytes) +
           "; call.uni (r1), __cudaCDP2GetParameterBuffer, (a1, n1); ld.param.b64 %d2, [r1]; }\n";
  };
  const auto launchIt = [](std::string_view kernel, int threads) {
    return "{ .param .b64 k1; .param .b64 p1; .param .align 4 .b8 g1[12]; .param .align 4 .b8 b1[12]; .param .b32 n1; .param "
           ".b64 s1;"
           ".param .b32 r1; mov.u64 %d3, " +
           std::string(kernel) +
           "; st.param.b64 [k1], %d3; st.param.b64 [p1], %d2; st.param.b32 [g1], 1; st.param.b32 [g1+4], 1; st.param.b32 [g1+8], "
           "1;"
           "st.param.b32 [b1], " +
           std::to_string(threads) +
           "; st.param.b32 [b1+4], 1; st.param.b32 [b1+8], 1; st.param.b32 [n1], 0; st.param.b64 [s1], 0;"
           "call.uni (r1), __cudaCDP2LaunchDevice, (k1, p1, g1, b1, n1, s1); ld.param.b32 %r9, [r1]; }\n" +
           takeNote("%r9");
  };
  const std::string fill = "st.u64 [%d2], %d0; st.u32 [%d2+8], 5;";
  CHECK(notesOf(declared + launchingKernel("k", buffer(12) + fill + launchIt("note", 2))) == std::vector<uint32_t>{0, 5, 5});
  CHECK(notesOf(declared + launchingKernel("k", buffer(12) + fill + launchIt("note", 2000) + launchIt("note", 1))) ==
        std::vector<uint32_t>{9, 0, 5});
  const std::string none = ".visible .entry none () { ret; }\n";
  CHECK(notesOf(declared + none + launchingKernel("k", "mov.u64 %d2, 0;" + launchIt("none", 1) + launchIt("note", 1))) ==
        std::vector<uint32_t>{0, 1});
  mentions(faultOfLaunch(declared + launchingKernel("k", buffer(4) + launchIt("note", 1))),
           "4 bytes of parameters, 12 are needed");
}

TEST_CASE("a fault in a child names its kernel and its parent's, and later work does not run") {
  LaunchingDevice device(launchingKernel("child", "mov.u64 %d1, 64; st.u32 [%d1], 1;") +
                         launchingKernel("k", launchOf("note", "1") + launchOf("child", "0") + launchOf("note", "2")));
  const auto fault = device.tryLaunch("k", oneThread, device.notes, uint32_t{0});
  REQUIRE(fault);
  CHECK(fault->kind == Fault::Kind::illegalAddress);
  mentions(*fault, "kernel child, block (0, 0, 0)");
  mentions(*fault, "launched by kernel k");
  CHECK(device.noted() == std::vector<uint32_t>{1});
}

TEST_CASE("a launch of a kernel that cannot be decoded names the kernel and the reason") {
  const Fault fault =
      faultOfLaunch(launchingKernel("odd", "txq.filter_mode.b32 %r0, [%d0];") + launchingKernel("k", launchOf("odd", "0")));
  CHECK(fault.kind == Fault::Kind::notSupported);
  mentions(fault, "a launch of kernel odd: ");
}

TEST_CASE("without a device runtime a launch from a kernel is refused") {
  LaunchingDevice device(launchingKernel("k", launchOf("note", "1")));
  device.launch.runtime = nullptr;
  const auto fault = device.tryLaunch("k", oneThread, device.notes, uint32_t{0});
  REQUIRE(fault);
  CHECK(fault->kind == Fault::Kind::notSupported);
}

TEST_CASE("endless self-launches are stopped by the launcher") {
  LaunchingDevice device(launchingKernel("k", launchOf("k", "0", tailLaunch)));
  std::atomic<bool> cancelled{false};
  device.launch.cancelled = &cancelled;
  std::thread canceller([&] { cancelled = true; });
  const auto fault = device.tryLaunch("k", oneThread, device.notes, uint32_t{0});
  canceller.join();
  REQUIRE(fault);
  CHECK(fault->kind == Fault::Kind::timeout);
}

TEST_CASE("copies and fills run in order with children, and one of unmapped memory is a fault") {
  const auto fill = [](const std::string& at, int bytes) {
    return "{ .param .b64 p1; .param .b32 v1; .param .b64 n1; .param .b64 s1; .param .b32 e1; st.param.b64 [p1], " + at +
           "; st.param.b32 [v1], 1; st.param.b64 [n1], " + std::to_string(bytes) +
           "; st.param.b64 [s1], 0; call.uni (e1), __cudaCDP2MemsetAsync, (p1, v1, n1, s1); ld.param.b32 %r9, [e1]; }\n";
  };
  const auto copy = [](int kind) {
    return "{ .param .b64 t1; .param .b64 f1; .param .b64 n1; .param .b32 k1; .param .b64 s1; .param .b32 e1; add.u64 %d2, %d0, "
           "4;"
           "add.u64 %d3, %d0, 8; st.param.b64 [t1], %d3; st.param.b64 [f1], %d2; st.param.b64 [n1], 4; st.param.b32 [k1], " +
           std::to_string(kind) +
           "; st.param.b64 [s1], 0; call.uni (e1), __cudaCDP2MemcpyAsync, (t1, f1, n1, k1, s1); ld.param.b32 %r9, [e1]; }\n";
  };
  // The fill sets the second note, after the first two children and before the third; the copy overwrites it with the first.
  const std::string notes = launchOf("note", "5") + launchOf("note", "6") + "add.u64 %d1, %d0, 8;";
  CHECK(notesOf(launchingKernel("k", notes + fill("%d1", 2) + launchOf("note", "7"))) == std::vector<uint32_t>{5, 0x101, 7});
  CHECK(notesOf(launchingKernel("k", notes + copy(3))) == std::vector<uint32_t>{5, 5});
  CHECK(notesOf(launchingKernel("k", copy(1) + takeNote("%r9"))) == std::vector<uint32_t>{21});
  const Fault fault = faultOfLaunch(launchingKernel("k", fill("%d1", 1 << 20) + "add.u64 %d1, %d0, 8;" + fill("%d1", 1 << 20)));
  CHECK(fault.kind == Fault::Kind::illegalAddress);
  mentions(fault, "a fill by a kernel: an illegal write to 0x");
  mentions(fault, "launched by kernel k");
}

TEST_CASE("there are twice as many events as pending launches") {
  LaunchingDevice device(
      launchingKernel("k", repeat("{ .param .b64 p1; .param .b32 f1; .param .b32 e1; add.u64 %d1, %d0, 65528; st.param.b64 [p1], "
                                  "%d1; st.param.b32 [f1], 2;"
                                  "call.uni (e1), __cudaCDP2EventCreateWithFlags, (p1, f1); ld.param.b32 %r9, [e1]; }\n" +
                                  takeNote("%r9"))));
  device.runtime.pendingLaunches = 2;
  device("k", oneThread, device.notes, uint32_t{6});
  CHECK(device.noted() == std::vector<uint32_t>{0, 0, 0, 0, 2, 2});
}

TEST_CASE("errors have names, and the device number is the runtime's") {
  // The second word of "cudaErrorInvalidConfiguration" and of the name of an unknown error.
  const auto name = [](int error) {
    return "{ .param .b32 c1; .param .b64 t1; st.param.b32 [c1], " + std::to_string(error) +
           "; call.uni (t1), __cudaCDP2GetErrorName, (c1); ld.param.b64 %d1, [t1]; } add.u64 %d1, %d1, 4;"
           "ld.u8 %r1, [%d1]; ld.u8 %r2, [%d1+1]; mad.lo.u32 %r1, %r1, 256, %r2;" +
           takeNote("%r1");
  };
  const std::string device =
      "{ .param .b64 p1; .param .b32 e1; add.u64 %d1, %d0, 65528; st.param.b64 [p1], %d1; call.uni (e1), __cudaCDP2GetDevice, "
      "(p1); }"
      "ld.u32 %r1, [%d1];" +
      takeNote("%r1");
  CHECK(notesOf(launchingKernel("k", name(9) + name(12345) + device)) ==
        std::vector<uint32_t>{'E' * 256 + 'r', 'c' * 256 + 'o', 2});
  const Fault fault = faultOfLaunch(launchingKernel("k",
                                                    "{ .param .b32 c1; .param .b64 t1; st.param.b32 [c1], 9; call.uni (t1), "
                                                    "__cudaCDP2GetErrorName, (c1); ld.param.b64 %d1, [t1]; }"
                                                    "st.u8 [%d1], 1;"));
  CHECK(fault.kind == Fault::Kind::illegalAddress);
}

TEST_CASE("a module that calls an unsupported function of the device runtime is refused with the function's name") {
  CHECK_THROWS_WITH_AS(LaunchingDevice(".extern .func (.param .b32 r) cudaCGSynchronize (.param .b64 g, .param .b32 f);\n" +
                                       launchingKernel("k",
                                                       "{ .param .b64 g1; .param .b32 f1; .param .b32 r1; st.param.b64 [g1], 0;"
                                                       "st.param.b32 [f1], 0; call.uni (r1), cudaCGSynchronize, (g1, f1); }")),
                       doctest::Contains("Unresolved extern function 'cudaCGSynchronize'"), PtxError);
}

}  // namespace vgpu::emulator
