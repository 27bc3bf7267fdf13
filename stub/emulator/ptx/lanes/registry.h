// Lane operations: instructions that compute each lane's result only from that lane's operands. They are rows of a table, found by name
// (`mad.wide.s32`). The table exists once for each instruction set for which this folder's files are compiled, and the best one for this
// processor is chosen at the first use.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>

#include "stub/emulator/ptx/lanes/instruction.h"

namespace vgpu::emulator {

// How a literal operand is read.
enum class Literal : uint8_t { whole, f32, f64, predicate };

struct Shape {
  uint8_t registerBytes;  // of a lane: 4, 8 or 16
  uint8_t bytes;          // number of bytes in use
  Literal literal;
};

struct Row {
  Handler handler;
  Shape out;
  uint8_t inputs;
  std::array<Shape, 5> in;
};

class Registry {
 public:
  // The name is `family` or, with a type, `family.type`.
  void add(const char* family, const char* type, const Row& row);
  const Row* find(std::string_view name) const;

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, Row, Hash, std::equal_to<>> rows;
};

const Registry& registry();

}  // namespace vgpu::emulator
