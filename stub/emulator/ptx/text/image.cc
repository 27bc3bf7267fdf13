#include "stub/emulator/ptx/text/image.h"

#include <algorithm>
#include <cstring>

namespace vgpu::emulator {

Image::Image(const Declarations& declarations) : declarations(declarations) {
  layOutVariables(Space::constant);  // first, as on hardware
  layOutVariables(Space::global);
  for (const FunctionDecl& function : declarations.functions)
    for (const VariableDecl& decl : function.statics) statics[{&function, decl.name, decl.space}].push_back(layOut(decl));
  for (const Layout& layout : layouts)
    for (const Relocation& relocation : layout.decl->relocations) requireTarget(relocation);
}

void Image::layOutVariables(Space space) {
  for (size_t i = 0; i < declarations.variables.size(); ++i) {
    const VariableDecl& decl = declarations.variables[i];
    if (decl.space != space) continue;
    if (declarations.variableIndex.at(decl.name) != i) continue;  // another declaration of the name has the memory
    if (decl.isExtern)
      throw PtxError(PtxError::Kind::unresolved, decl.line, "variable '" + decl.name + "' is declared but not defined");
    const Layout layout = layOut(decl);
    named[decl.name] = layout;
    moduleVariables.push_back({decl.name, space == Space::global ? VariableSpace::global : VariableSpace::constant,
                               layout.section, layout.offset, decl.bytes, decl.managed, decl.type});
  }
}

Image::Layout Image::layOut(const VariableDecl& decl) {
  std::optional<uint32_t> own;
  std::optional<uint32_t>& index = decl.managed ? managed : decl.space == Space::constant ? constants : own;
  if (!index) index = addSection();
  Section& section = imageSections[*index];
  section.managed = decl.managed;
  const uint64_t align = std::max<uint64_t>(decl.align, 1);
  const uint64_t offset = (section.bytes + align - 1) / align * align;
  section.bytes = offset + decl.bytes;
  section.align = std::max(section.align, align);
  bytes += decl.bytes;
  if (bytes > uint64_t{1} << 40) throw PtxError(PtxError::Kind::invalid, decl.line, "more than 1 TiB of variables");
  layouts.push_back({&decl, *index, offset});
  return layouts.back();
}

uint32_t Image::addSection() {
  imageSections.emplace_back();
  return static_cast<uint32_t>(imageSections.size() - 1);
}

uint64_t Image::variableAddress(std::string_view name) const { return addressAt(named.at(name)); }

std::optional<uint64_t> Image::findStatic(const FunctionDecl& function, std::string_view name, Space space, size_t number) const {
  const auto found = statics.find({&function, name, space});
  if (found == statics.end() || number >= found->second.size()) return std::nullopt;
  return addressAt(found->second[number]);
}

uint64_t Image::functionAddress(const FunctionDecl& function) const {
  return 8 * static_cast<uint64_t>(&function - declarations.functions.data() + 1);
}

const FunctionDecl* Image::functionAt(uint64_t address) const {
  const uint64_t number = address / 8;
  if (address % 8 != 0 || number == 0 || number > declarations.functions.size()) return nullptr;
  return &declarations.functions[number - 1];
}

std::pair<uint64_t, uint64_t> Image::constantRange() const {
  if (!constants) return {};
  const uint64_t base = placedAt[*constants].base;
  return {base, base + constantBytes()};
}

const FunctionDecl* Image::findFunction(std::string_view name) const {
  const auto aliased = declarations.aliases.find(name);
  const auto found = declarations.functionIndex.find(aliased == declarations.aliases.end() ? name : aliased->second);
  if (found == declarations.functionIndex.end()) return nullptr;
  const FunctionDecl& function = declarations.functions[found->second];
  return function.hasBody ? &function : nullptr;
}

void Image::requireTarget(const Relocation& relocation) const {
  if (named.contains(relocation.symbol) || findFunction(relocation.symbol)) return;
  throw PtxError(PtxError::Kind::unresolved, relocation.line,
                 "an initialiser takes the address of '" + relocation.symbol + "', which is not defined here");
}

uint64_t Image::addressOf(const Relocation& relocation) const {
  const auto plus = static_cast<uint64_t>(relocation.addend);
  if (const auto found = named.find(relocation.symbol); found != named.end()) return addressAt(found->second) + plus;
  return functionAddress(*findFunction(relocation.symbol)) + plus;
}

void Image::place(std::span<const SectionPlace> places) {
  placedAt.assign(places.begin(), places.end());
  placed = true;
  for (size_t i = 0; i < imageSections.size(); ++i)
    if (imageSections[i].bytes != 0 && !placedAt[i].hasValues) std::memset(placedAt[i].host, 0, imageSections[i].bytes);
  for (const Layout& layout : layouts) {
    if (placedAt[layout.section].hasValues) continue;
    const VariableDecl& decl = *layout.decl;
    std::byte* const host = placedAt[layout.section].host + layout.offset;
    if (!decl.initial.empty())
      std::memcpy(host, decl.initial.data(), std::min<uint64_t>(decl.initial.size(), decl.bytes));
    for (const Relocation& relocation : decl.relocations) {
      const uint64_t address = addressOf(relocation) >> relocation.shift;
      std::memcpy(host + relocation.offset, &address, std::min(relocation.bytes, 8u));
    }
  }
}

}  // namespace vgpu::emulator
