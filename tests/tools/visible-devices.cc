#include "tools/vgpud/visible-devices.h"

#include <doctest/doctest.h>
#include <kj/exception.h>

namespace vgpu::daemon {
namespace {

using Ordinals = std::vector<uint32_t>;

const std::vector<DeviceInfo> three = {{0, "first", "GPU-aa11-0"}, {1, "second", "GPU-aa22-1"}, {2, "third", "GPU-bb33-2"}};

std::string refusal(std::string_view text, const char* own = nullptr) {
  auto caught = kj::runCatchingExceptions([&] { visibleDevices(text, three, own); });
  KJ_IF_MAYBE (exception, caught) {
    return exception->getDescription().cStr();
  }
  return "";
}

}  // namespace

TEST_CASE("numbers name a node's devices, in the order of the list") {
  CHECK(visibleDevices("1", three) == Ordinals{1});
  CHECK(visibleDevices("2,0", three) == Ordinals{2, 0});
  CHECK(visibleDevices(" 1, 2", three) == Ordinals{1, 2});
}

TEST_CASE("all in their own order are no choice") {
  CHECK(visibleDevices("0,1,2", three).empty());
  CHECK(visibleDevices("0,2,1", three) == Ordinals{0, 2, 1});
}

TEST_CASE("the first part that names no device ends the list") {
  CHECK(visibleDevices("1,-1,0", three) == Ordinals{1});
  CHECK(visibleDevices("1,7,0", three) == Ordinals{1});
  CHECK(visibleDevices("1,,0", three) == Ordinals{1});
  CHECK(visibleDevices("1,none", three) == Ordinals{1});
}

TEST_CASE("a UUID, or a beginning that only one has, names a device") {
  CHECK(visibleDevices("GPU-bb33-2", three) == Ordinals{2});
  CHECK(visibleDevices("GPU-bb,GPU-aa1", three) == Ordinals{2, 0});
  CHECK(visibleDevices("GPU-bb,GPU-aa", three) == Ordinals{2});
}

TEST_CASE("a list has numbers or UUIDs, as its first part is: another one ends it") {
  CHECK(visibleDevices("2,GPU-aa1,1", three) == Ordinals{2});
  CHECK(visibleDevices("GPU-aa1,2,GPU-bb", three) == Ordinals{0});
}

TEST_CASE("a number is read as the driver reads it") {
  for (const char* one : {"01", "+1", "1.5", "1a", "1 ", "1;0", "1:0", "4294967297"}) CHECK(visibleDevices(one, three) == Ordinals{1});
  CHECK(visibleDevices("0x1", three) == Ordinals{0});
}

TEST_CASE("a list that names no device, or one twice, is refused, and the message has the list") {
  for (const char* none : {"", ",0", "-1", "NoDevFiles", "3", "GPU-cc", "GPU-", "gpu-bb33-2", "bb33-2"})
    CHECK(refusal(none).find("CUDA_VISIBLE_DEVICES=\"" + std::string(none) + "\" names none of this node's 3 GPUs") != std::string::npos);
  CHECK(refusal("0,1,0").find("names a GPU twice") != std::string::npos);
}

TEST_CASE("numbers mean what they mean in the daemon's environment") {
  CHECK(visibleDevices("5", three, "4,5,6") == Ordinals{1});
  CHECK(visibleDevices("6,4", three, "4,5,6") == Ordinals{2, 0});
  CHECK(refusal("0", "4,5,6").find("take numbers from 4,5,6") != std::string::npos);
  CHECK(visibleDevices("1", three, "GPU-aa11-0,GPU-aa22-1,GPU-bb33-2") == Ordinals{1});
}

}  // namespace vgpu::daemon
