#include "tools/vgpud/visible-devices.h"

#include <doctest/doctest.h>

namespace vgpu::daemon {
namespace {

using Ordinals = std::vector<uint32_t>;

const std::vector<DeviceInfo> three = {{0, "first", "GPU-aa11-0"}, {1, "second", "GPU-aa22-1"}, {2, "third", "GPU-bb33-2"}};

Ordinals ordinals(std::string_view text, const char* own = nullptr) { return visibleDevices(text, three, own).ordinals; }
std::string refusal(std::string_view text, const char* own = nullptr) { return visibleDevices(text, three, own).refusal; }

}  // namespace

TEST_CASE("numbers select a node's devices, in the order of the list") {
  CHECK(ordinals("1") == Ordinals{1});
  CHECK(ordinals("2,0") == Ordinals{2, 0});
  CHECK(ordinals(" 1, 2") == Ordinals{1, 2});
}

TEST_CASE("all devices in their own order count as no choice") {
  CHECK(ordinals("0,1,2").empty());
  CHECK(ordinals("0,2,1") == Ordinals{0, 2, 1});
}

TEST_CASE("the first invalid entry ends the list") {
  CHECK(ordinals("1,-1,0") == Ordinals{1});
  CHECK(ordinals("1,7,0") == Ordinals{1});
  CHECK(ordinals("1,,0") == Ordinals{1});
  CHECK(ordinals("1,none") == Ordinals{1});
}

TEST_CASE("a UUID, or a prefix of only one UUID, selects a device") {
  CHECK(ordinals("GPU-bb33-2") == Ordinals{2});
  CHECK(ordinals("GPU-bb,GPU-aa1") == Ordinals{2, 0});
  CHECK(ordinals("GPU-bb,GPU-aa") == Ordinals{2});
}

TEST_CASE("a list has either numbers or UUIDs, like its first entry: an entry of the other kind ends it") {
  CHECK(ordinals("2,GPU-aa1,1") == Ordinals{2});
  CHECK(ordinals("GPU-aa1,2,GPU-bb") == Ordinals{0});
}

TEST_CASE("a number is parsed as the driver does") {
  for (const char* one : {"01", "+1", "1.5", "1a", "1 ", "1;0", "1:0", "4294967297"}) CHECK(ordinals(one) == Ordinals{1});
  CHECK(ordinals("0x1") == Ordinals{0});
}

TEST_CASE("a list that selects no device, or one twice, is refused, and the message contains the list") {
  for (const char* none : {"", ",0", "-1", "NoDevFiles", "3", "GPU-cc", "GPU-", "gpu-bb33-2", "bb33-2"})
    CHECK(refusal(none).find("CUDA_VISIBLE_DEVICES=\"" + std::string(none) + "\" names none of this node's 3 GPUs") != std::string::npos);
  CHECK(refusal("0,1,0").find("names a GPU twice") != std::string::npos);
  CHECK(refusal("0,1").empty());
  CHECK(!visibleDevices("3", three).isInvalid);
  CHECK(visibleDevices("0,1,0", three).isInvalid);
}

TEST_CASE("numbers refer to the devices in the daemon's environment") {
  CHECK(ordinals("5", "4,5,6") == Ordinals{1});
  CHECK(ordinals("6,4", "4,5,6") == Ordinals{2, 0});
  CHECK(refusal("0", "4,5,6").find("use numbers 4,5,6") != std::string::npos);
  CHECK(ordinals("1", "GPU-aa11-0,GPU-aa22-1,GPU-bb33-2") == Ordinals{1});
}

}  // namespace vgpu::daemon
