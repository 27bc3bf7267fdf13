// Replaces a value until the end of this object's life, then restores it.
#pragma once

#include <utility>

namespace vgpu::emulator::api {

template <class Value>
class Replaced {
 public:
  Replaced(Value& place, Value now) : place(place), before(std::exchange(place, std::move(now))) {}
  ~Replaced() { place = std::move(before); }
  Replaced(const Replaced&) = delete;

 private:
  Value& place;
  Value before;
};

}  // namespace vgpu::emulator::api
