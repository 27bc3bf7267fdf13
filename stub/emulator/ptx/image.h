// A module's image: its variables with their initial values, and a slot for each function.
#pragma once

#include "declarations.h"

namespace vgpu::emulator {

class Image {
 public:
  // Lays out. Throws PtxError where a variable or an initialiser names what the module does not define.
  explicit Image(const Declarations&);

  const std::vector<Variable>& variables() const { return variables_; }
  uint64_t bytes() const { return bytes_; }
  std::optional<uint64_t> managedOffset() const { return managedOffset_; }
  uint64_t constantBytes() const { return constantBytes_; }
  std::optional<uint64_t> findVariable(std::string_view name) const;  // offset
  std::optional<uint64_t> findStatic(const FunctionDecl&, std::string_view name) const;
  uint64_t functionSlot(const FunctionDecl&) const;
  // [begin, end) of .const variables, as offsets.
  const std::vector<std::pair<uint64_t, uint64_t>>& constantRanges() const { return constantRanges_; }

  void write(uint64_t base, std::byte* host) const;

 private:
  struct Placed {
    const VariableDecl* decl;
    uint64_t offset;
  };
  void placeVariables(bool managed);
  uint64_t place(const VariableDecl&);
  uint64_t addressOf(const Relocation&, uint64_t base) const;

  const Declarations& declarations_;
  std::vector<Placed> placed_;
  std::vector<Variable> variables_;
  std::unordered_map<std::string_view, uint64_t> offsets_;
  std::map<std::pair<const FunctionDecl*, std::string_view>, uint64_t> statics_;
  std::unordered_map<const FunctionDecl*, uint64_t> slots_;
  std::vector<std::pair<uint64_t, uint64_t>> constantRanges_;
  std::optional<uint64_t> managedOffset_;
  uint64_t bytes_ = 0, constantBytes_ = 0;
};

}  // namespace vgpu::emulator
