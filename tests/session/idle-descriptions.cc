// Which library descriptor that is idle in the worker is reused for a new one.
#include "intercept/session/idle-descriptions.h"

#include <doctest/doctest.h>

using namespace vgpu;
using namespace vgpu::client;

namespace {

ArgumentBlock blockOf(uint64_t first, uint64_t second) {
  ArgumentBlock block(16);
  std::memcpy(block.bytes().data(), &first, 8);
  std::memcpy(block.bytes().data() + 8, &second, 8);
  return block;
}

// A descriptor of that device and context, with one attribute set.
struct Description {
  Description(unsigned device, uint64_t context, uint64_t value) {
    object->later = {{.block = blockOf(0, 7)}, device, context};
    object->set({.key = 1, .digests = {5, 5}, .block = blockOf(0, value)});
  }
  uint64_t takeFrom(IdleDescriptions& idle) const { return idle.take(*object); }
  void keepIn(IdleDescriptions& idle, uint64_t handle) {
    object->nameInCalls(handle);
    object->isThere(handle);
    CHECK_FALSE(idle.keep({std::move(object), nullptr}));
  }

  std::unique_ptr<LibraryObject> object = std::make_unique<LibraryObject>(0, LibraryObject::Digests{1, 1}, nullptr, nullptr);
};

}  // namespace

TEST_CASE("a descriptor is reused for one that is exactly like it, once") {
  IdleDescriptions idle;
  Description(0, 1, 40).keepIn(idle, 100);
  CHECK(Description(0, 1, 41).takeFrom(idle) == 0);
  CHECK(Description(0, 1, 40).takeFrom(idle) == 100);
  CHECK(Description(0, 1, 40).takeFrom(idle) == 0);
}

TEST_CASE("a descriptor is not reused for another device, nor for another context, because it ends with its own context") {
  IdleDescriptions idle;
  Description(0, 1, 40).keepIn(idle, 100);
  CHECK(Description(1, 1, 40).takeFrom(idle) == 0);
  CHECK(Description(0, 2, 40).takeFrom(idle) == 0);
  CHECK(Description(0, 1, 40).takeFrom(idle) == 100);
}
