// A module's image: its variables with their initial values.
//
// Each variable is a section of its own, as in drivers, except that all .const variables form one, and all managed ones.
#pragma once

#include <map>
#include <span>
#include <tuple>

#include "stub/emulator/ptx/text/declarations.h"
#include "stub/emulator/ptx/text/error.h"
#include "stub/emulator/ptx/text/sections.h"

namespace vgpu::emulator {

class Image {
 public:
  // Computes the layout. Throws PtxError if a variable or an initialiser names something that the module does not define.
  explicit Image(const Declarations&);

  const std::vector<Variable>& variables() const { return moduleVariables; }
  std::span<const Section> sections() const { return imageSections; }
  uint64_t constantBytes() const { return constants ? imageSections[*constants].bytes : 0; }

  // Places section i at places[i] and writes the initial values. Afterwards addresses are known.
  void place(std::span<const SectionPlace> places);
  bool isPlaced() const { return placed; }
  uint64_t addressOf(const Variable& variable) const { return placedAt[variable.section].base + variable.offset; }
  uint64_t variableAddress(std::string_view name) const;
  // The address of a variable inside a function; `number` selects among several with that name in its blocks, in text order.
  std::optional<uint64_t> findStatic(const FunctionDecl&, std::string_view name, Space, size_t number) const;
  // A small number, as on hardware; no memory lies there.
  uint64_t functionAddress(const FunctionDecl&) const;
  const FunctionDecl* functionAt(uint64_t address) const;  // nullptr if it is no function's
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
  uint64_t addressAt(const Layout& layout) const { return placedAt[layout.section].base + layout.offset; }
  uint64_t addressOf(const Relocation&) const;
  void requireTarget(const Relocation&) const;
  const FunctionDecl* findFunction(std::string_view name) const;

  const Declarations& declarations;
  std::vector<Section> imageSections;
  std::optional<uint32_t> constants, managed;
  std::vector<SectionPlace> placedAt;
  bool placed = false;
  uint64_t bytes = 0;
  std::vector<Layout> layouts;
  std::vector<Variable> moduleVariables;
  std::unordered_map<std::string_view, Layout> named;
  std::map<std::tuple<const FunctionDecl*, std::string_view, Space>, std::vector<Layout>> statics;
};

}  // namespace vgpu::emulator
