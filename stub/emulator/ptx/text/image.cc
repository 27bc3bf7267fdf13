#include "stub/emulator/ptx/text/image.h"

#include <algorithm>
#include <cstring>

namespace vgpu::emulator {

Image::Image(const Declarations& declarations) : declarations_(declarations) {
  layOutVariables(Space::constant);  // first, as on hardware
  layOutVariables(Space::global);
  for (const FunctionDecl& function : declarations.functions)
    for (const VariableDecl& decl : function.statics) statics_[{&function, decl.name}] = layOut(decl);
  for (const Layout& layout : layouts_)
    for (const Relocation& relocation : layout.decl->relocations) requireTarget(relocation);
}

void Image::layOutVariables(Space space) {
  for (size_t i = 0; i < declarations_.variables.size(); ++i) {
    const VariableDecl& decl = declarations_.variables[i];
    if (decl.space != space) continue;
    if (declarations_.variableIndex.at(decl.name) != i) continue;  // another declaration of the name holds it
    if (decl.isExtern)
      throw PtxError(PtxError::Kind::unresolved, decl.line, "variable '" + decl.name + "' is declared but not defined");
    const Layout layout = layOut(decl);
    named_[decl.name] = layout;
    variables_.push_back({decl.name, space == Space::global ? VariableSpace::global : VariableSpace::constant,
                          layout.section, layout.offset, decl.bytes, decl.managed});
  }
}

Image::Layout Image::layOut(const VariableDecl& decl) {
  std::optional<uint32_t> own;
  std::optional<uint32_t>& index = decl.managed ? managed_ : decl.space == Space::constant ? constants_ : own;
  if (!index) index = addSection();
  Section& section = sections_[*index];
  section.managed = decl.managed;
  const uint64_t align = std::max<uint64_t>(decl.align, 1);
  const uint64_t offset = (section.bytes + align - 1) / align * align;
  section.bytes = offset + decl.bytes;
  section.align = std::max(section.align, align);
  bytes_ += decl.bytes;
  if (bytes_ > uint64_t{1} << 40) throw PtxError(PtxError::Kind::invalid, decl.line, "more than 1 TiB of variables");
  layouts_.push_back({&decl, *index, offset});
  return layouts_.back();
}

uint32_t Image::addSection() {
  sections_.emplace_back();
  return static_cast<uint32_t>(sections_.size() - 1);
}

uint64_t Image::variableAddress(std::string_view name) const { return addressAt(named_.at(name)); }

std::optional<uint64_t> Image::findStatic(const FunctionDecl& function, std::string_view name) const {
  const auto found = statics_.find({&function, name});
  return found == statics_.end() ? std::nullopt : std::optional(addressAt(found->second));
}

uint64_t Image::functionAddress(const FunctionDecl& function) const {
  return 8 * static_cast<uint64_t>(&function - declarations_.functions.data() + 1);
}

std::pair<uint64_t, uint64_t> Image::constantRange() const {
  if (!constants_) return {};
  const uint64_t base = places_[*constants_].base;
  return {base, base + constantBytes()};
}

const FunctionDecl* Image::findFunction(std::string_view name) const {
  const auto aliased = declarations_.aliases.find(name);
  const auto found = declarations_.functionIndex.find(aliased == declarations_.aliases.end() ? name : aliased->second);
  if (found == declarations_.functionIndex.end()) return nullptr;
  const FunctionDecl& function = declarations_.functions[found->second];
  return function.hasBody ? &function : nullptr;
}

void Image::requireTarget(const Relocation& relocation) const {
  if (named_.contains(relocation.symbol) || findFunction(relocation.symbol)) return;
  throw PtxError(PtxError::Kind::unresolved, relocation.line,
                 "an initialiser takes the address of '" + relocation.symbol + "', which is not defined here");
}

uint64_t Image::addressOf(const Relocation& relocation) const {
  const auto plus = static_cast<uint64_t>(relocation.addend);
  if (const auto found = named_.find(relocation.symbol); found != named_.end()) return addressAt(found->second) + plus;
  return functionAddress(*findFunction(relocation.symbol)) + plus;
}

void Image::place(std::span<const SectionPlace> places) {
  places_.assign(places.begin(), places.end());
  placed_ = true;
  for (size_t i = 0; i < sections_.size(); ++i)
    if (sections_[i].bytes != 0) std::memset(places_[i].host, 0, sections_[i].bytes);
  for (const Layout& layout : layouts_) {
    const VariableDecl& decl = *layout.decl;
    std::byte* const host = places_[layout.section].host + layout.offset;
    if (!decl.initial.empty())
      std::memcpy(host, decl.initial.data(), std::min<uint64_t>(decl.initial.size(), decl.bytes));
    for (const Relocation& relocation : decl.relocations) {
      const uint64_t address = addressOf(relocation) >> relocation.shift;
      std::memcpy(host + relocation.offset, &address, std::min(relocation.bytes, 8u));
    }
  }
}

}  // namespace vgpu::emulator
