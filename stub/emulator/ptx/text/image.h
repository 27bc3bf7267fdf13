// A module's image: its variables with their initial values.
//
// Every variable is placed by itself, as drivers do, but .const ones together, and managed ones.
#pragma once

#include <span>

#include "stub/emulator/ptx/text/declarations.h"
#include "stub/emulator/ptx/text/error.h"
#include "stub/emulator/ptx/text/sections.h"

namespace vgpu::emulator {

class Image {
 public:
  // Lays out. Throws PtxError where a variable or an initialiser names what the module does not define.
  explicit Image(const Declarations&);

  const std::vector<Variable>& variables() const { return variables_; }
  std::span<const Section> sections() const { return sections_; }
  uint64_t constantBytes() const { return constants_ ? sections_[*constants_].bytes : 0; }

  // Puts section i at places[i] and writes the initial values. Addresses are known from then on.
  void place(std::span<const SectionPlace> places);
  bool isPlaced() const { return placed_; }
  uint64_t addressOf(const Variable& variable) const { return places_[variable.section].base + variable.offset; }
  uint64_t variableAddress(std::string_view name) const;
  std::optional<uint64_t> findStatic(const FunctionDecl&, std::string_view name) const;  // its address
  // A small number, as on hardware: nothing lies there.
  uint64_t functionAddress(const FunctionDecl&) const;
  // [begin, end) of .const variables.
  std::pair<uint64_t, uint64_t> constantRange() const;

 private:
  struct Layout {
    const VariableDecl* decl;
    uint32_t section;
    uint64_t offset;
  };
  Layout layOut(const VariableDecl&);
  void layOutVariables(Space);
  uint32_t addSection();
  uint64_t addressAt(const Layout& layout) const { return places_[layout.section].base + layout.offset; }
  uint64_t addressOf(const Relocation&) const;
  void requireTarget(const Relocation&) const;
  const FunctionDecl* findFunction(std::string_view name) const;

  const Declarations& declarations_;
  std::vector<Section> sections_;
  std::optional<uint32_t> constants_, managed_;
  std::vector<SectionPlace> places_;
  bool placed_ = false;
  uint64_t bytes_ = 0;
  std::vector<Layout> layouts_;
  std::vector<Variable> variables_;
  std::unordered_map<std::string_view, Layout> named_;
  std::map<std::pair<const FunctionDecl*, std::string_view>, Layout> statics_;
};

}  // namespace vgpu::emulator
