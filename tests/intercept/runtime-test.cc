// Rules of the CUDA runtime that do not depend on the device.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "runtime-run.h"

namespace {

const std::string program = VGPU_TEST_PROGRAMS "/sample-shared";

}  // namespace

TEST_CASE("each thread has its own last error, which survives successes and is cleared when it is read") {
  CHECK(runPreloaded({program, "last-error"}).output ==
        "first cudaErrorInvalidDevice\npeek cudaErrorInvalidDevice\nsuccess-keeps-it cudaSuccess\n"
        "other-thread cudaSuccess\ntake cudaErrorInvalidDevice\ntaken cudaSuccess\n");
}

TEST_CASE("launches that no device can execute fail at once with CUDA's errors and reach no driver") {
  Outcome outcome = runPreloaded({program, "configurations"});
  CHECK(outcome.output ==
        "zero-grid cudaErrorInvalidValue\nzero-block cudaErrorInvalidValue\n"
        "large-block cudaErrorInvalidValue\nlarge-grid cudaErrorInvalidValue\n"
        "large-shared cudaErrorInvalidValue\nunregistered cudaErrorInvalidResourceHandle\nfine cudaSuccess\n");
  CHECK(outcome.countOf("cuLaunchKernel") == 1);
}

TEST_CASE("the child of a process that used CUDA cannot use it") {
  CHECK(runPreloaded({program, "fork-after-use"}).output ==
        "before cudaSuccess\nchild cudaErrorInitializationError\nchild-last cudaErrorInitializationError\n"
        "parent cudaSuccess\n");
}

TEST_CASE("the child of a process that had not used CUDA yet can use it") {
  CHECK(runPreloaded({program, "fork-before-use"}).output ==
        "child cudaSuccess\nchild-last cudaSuccess\nparent cudaSuccess\n");
}

TEST_CASE("a module is loaded once; all of its variables are found then, and a kernel at its launch") {
  Outcome outcome = runPreloaded({program});
  CHECK(outcome.countOf("cuLibraryLoadData") == 1);  // it has a managed variable, which all contexts share
  CHECK(outcome.countOf("cuLibraryGetModule") == 1);
  CHECK(outcome.countOf("cuModuleGetGlobal number") == 1);
  CHECK(outcome.countOf("cuModuleGetGlobal managed") == 1);
  CHECK(outcome.countOf("cuModuleGetFunction") == 2);  // two of three kernels are launched
}

TEST_CASE("after a reset the context and the modules are made again") {
  Outcome outcome = runPreloaded({program, "reset"});
  CHECK(outcome.status == 0);
  CHECK(outcome.countOf("cuDevicePrimaryCtxReset") == 1);
  CHECK(outcome.countOf("cuDevicePrimaryCtxRetain 0") == 2);
  CHECK(outcome.countOf("cuLibraryLoadData") == 1);
  CHECK(outcome.countOf("cuLibraryGetModule") == 2);
}

TEST_CASE("each thread has its own current device") {
  Outcome outcome = runPreloaded({program, "devices"});
  CHECK(outcome.printed("own 1"));
  CHECK(outcome.printed("other 0"));
  CHECK(outcome.called("cuDevicePrimaryCtxRetain 1"));
  CHECK_FALSE(outcome.called("cuDevicePrimaryCtxRetain 0"));
}

TEST_CASE("a thread whose cudaSetDevice fails keeps its device") {
  Outcome outcome = runPreloaded({program, "refused-device"}, {"VGPU_TEST_FAIL=cuDevicePrimaryCtxRetain 1:2"});
  CHECK(outcome.printed("choose cudaErrorMemoryAllocation"));
  CHECK(outcome.printed("device 0"));
  CHECK(outcome.printed("attribute cudaErrorInvalidResourceHandle"));  // a host function is not a kernel
  CHECK(outcome.printed("still 0"));
  CHECK(outcome.printed("malloc cudaSuccess"));
}

TEST_CASE("a managed variable that two devices use is the same variable of one library") {
  Outcome outcome = runPreloaded({program, "two-devices"});
  CHECK(outcome.printed("second cudaSuccess"));
  CHECK(outcome.printed("first cudaSuccess"));
  CHECK(outcome.errors == "");
  CHECK(outcome.countOf("cuLibraryLoadData") == 1);
  CHECK(outcome.countOf("cuLibraryGetModule") == 2);
}

TEST_CASE("a function that a session does not support names the reason once, and fails") {
  Outcome outcome = runPreloaded({program, "unsupported"});
  CHECK(outcome.printed("unsupported cudaErrorNotSupported"));
  CHECK(outcome.printed("again cudaErrorNotSupported"));
  CHECK(outcome.printed("last cudaErrorNotSupported"));
  CHECK(outcome.errors ==
        "vgpu: cudaGetExportTable is not available on a virtual GPU (private tables of NVIDIA's driver are not provided); it returns "
        "cudaErrorNotSupported\n");
}

TEST_CASE("a call from a destructor after main returns") {
  for (std::string name : {"sample", "sample-shared"}) {
    Outcome outcome = runPreloaded({VGPU_TEST_PROGRAMS "/" + name, "late"});
    CHECK(outcome.status == 0);
    CHECK((outcome.printed("late cudaSuccess") || outcome.printed("late cudaErrorCudartUnloading")));
  }
}

TEST_CASE("the driver's errors are returned as the runtime's and remembered") {
  Outcome outcome = runPreloaded({program}, {"VGPU_TEST_FAIL=cuMemAlloc:2"});
  CHECK(outcome.printed("malloc cudaErrorMemoryAllocation"));
  CHECK(outcome.printed("launch cudaErrorMemoryAllocation"));  // the launches succeeded, but nobody has read the error
  outcome = runPreloaded({program}, {"VGPU_TEST_FAIL=cuLaunchKernel:700"});
  CHECK(outcome.printed("launch cudaErrorIllegalAddress"));
}

TEST_CASE("an image that does not suit the device is loaded once, and every launch returns the error") {
  Outcome outcome = runPreloaded({program}, {"VGPU_TEST_FAIL=cuLibraryLoadData:209"});
  CHECK(outcome.printed("launch cudaErrorNoKernelImageForDevice"));
  CHECK(outcome.printed("symbol cudaErrorNoKernelImageForDevice"));
  CHECK(outcome.countOf("cuLibraryLoadData") == 1);
}

TEST_CASE("a kernel that its module lacks is no device function") {
  Outcome outcome = runPreloaded({program}, {"VGPU_TEST_FAIL=cuModuleGetFunction:500"});
  CHECK(outcome.printed("launch cudaErrorInvalidDeviceFunction"));
}

TEST_CASE("without a driver every call fails, and one line names the library that was searched for") {
  if (dlopen("libcuda.so.1", RTLD_LAZY) != nullptr) {
    MESSAGE("this machine has a driver");
    return;
  }
  // A copy of the library in a folder without a libcuda.so.1: it searches its own folder first.
  auto alone = std::filesystem::temp_directory_path() / ("vgpu-runtime-" + std::to_string(getpid()));
  std::filesystem::create_directory(alone);
  std::filesystem::copy_file(VGPU_TEST_CUDART, alone / "libcudart.so.13");
  std::string preload = "LD_PRELOAD=" + (alone / "libcudart.so.13").string();
  Outcome outcome = runPreloaded({program}, {preload, "LD_LIBRARY_PATH=/nowhere"});
  std::filesystem::remove_all(alone);
  CHECK(outcome.printed("malloc cudaErrorInsufficientDriver"));
  CHECK(outcome.errors.find("vgpu: there is no CUDA driver: libcuda.so.1") == 0);
  CHECK(outcome.errors.find('\n') == outcome.errors.size() - 1);
}

TEST_CASE("error names and texts are NVIDIA's") {
  const std::string tool = VGPU_TEST_PROGRAMS "/error-texts";
  Outcome ours = runPlain({tool, VGPU_TEST_CUDART});
  Outcome theirs = runPlain({tool, VGPU_TEST_TOOLKIT_CUDART});
  REQUIRE(ours.status == 0);
  REQUIRE(theirs.output.find("cudaErrorInvalidValue") != std::string::npos);
  CHECK(ours.output == theirs.output);
}
