#include "image.h"

#include <cstring>

namespace vgpu::emulator {
namespace {

constexpr uint64_t kPageBytes = 4096;

}  // namespace

Image::Image(const Declarations& declarations) : declarations_(declarations) {
  placeVariables(false);
  for (const FunctionDecl& function : declarations.functions)
    for (const VariableDecl& decl : function.statics) statics_[{&function, decl.name}] = place(decl);
  bytes_ = (bytes_ + 7) / 8 * 8;
  for (const FunctionDecl& function : declarations.functions)
    if (function.hasBody) {
      slots_[&function] = bytes_;
      bytes_ += 8;
    }
  placeVariables(true);
  for (const Placed& placed : placed_)
    for (const Relocation& relocation : placed.decl->relocations) addressOf(relocation, 0);
}

// The managed ones have pages of their own, behind all others.
void Image::placeVariables(bool managed) {
  for (size_t i = 0; i < declarations_.variables.size(); ++i) {
    const VariableDecl& decl = declarations_.variables[i];
    if (decl.managed != managed || (decl.space != Space::global && decl.space != Space::constant)) continue;
    if (declarations_.variableIndex.at(decl.name) != i) continue;  // another declaration of the name holds it
    if (decl.isExtern)
      throw PtxError(PtxError::Kind::unresolved, decl.line, "variable '" + decl.name + "' is declared but not defined");
    if (managed && !managedOffset_) managedOffset_ = bytes_ = (bytes_ + kPageBytes - 1) / kPageBytes * kPageBytes;
    const uint64_t offset = place(decl);
    offsets_[decl.name] = offset;
    variables_.push_back({decl.name, decl.space == Space::global ? VariableSpace::global : VariableSpace::constant,
                          offset, decl.bytes, managed});
  }
}

uint64_t Image::place(const VariableDecl& decl) {
  const uint64_t align = std::max<uint64_t>(decl.align, 1);
  const uint64_t offset = (bytes_ + align - 1) / align * align;
  bytes_ = offset + decl.bytes;
  if (bytes_ > uint64_t{1} << 40) throw PtxError(PtxError::Kind::invalid, decl.line, "more than 1 TiB of variables");
  if (decl.space == Space::constant) {
    constantRanges_.push_back({offset, bytes_});
    constantBytes_ += decl.bytes;
  }
  placed_.push_back({&decl, offset});
  return offset;
}

std::optional<uint64_t> Image::findVariable(std::string_view name) const {
  const auto found = offsets_.find(name);
  return found == offsets_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<uint64_t> Image::findStatic(const FunctionDecl& function, std::string_view name) const {
  const auto found = statics_.find({&function, name});
  return found == statics_.end() ? std::nullopt : std::optional(found->second);
}

uint64_t Image::functionSlot(const FunctionDecl& function) const { return slots_.at(&function); }

uint64_t Image::addressOf(const Relocation& relocation, uint64_t base) const {
  const auto plus = static_cast<uint64_t>(relocation.addend);
  if (const auto offset = findVariable(relocation.symbol)) return base + *offset + plus;
  const auto aliased = declarations_.aliases.find(relocation.symbol);
  const auto function = declarations_.functionIndex.find(
      aliased == declarations_.aliases.end() ? std::string_view(relocation.symbol) : aliased->second);
  if (function != declarations_.functionIndex.end()) {
    const auto slot = slots_.find(&declarations_.functions[function->second]);
    if (slot != slots_.end()) return base + slot->second + plus;
  }
  throw PtxError(PtxError::Kind::unresolved, relocation.line,
                 "an initialiser takes the address of '" + relocation.symbol + "', which is not defined here");
}

void Image::write(uint64_t base, std::byte* host) const {
  std::memset(host, 0, bytes_);
  for (const Placed& placed : placed_) {
    const VariableDecl& decl = *placed.decl;
    if (!decl.initial.empty())
      std::memcpy(host + placed.offset, decl.initial.data(), std::min<uint64_t>(decl.initial.size(), decl.bytes));
    for (const Relocation& relocation : decl.relocations) {
      const uint64_t address = addressOf(relocation, base) >> relocation.shift;
      std::memcpy(host + placed.offset + relocation.offset, &address, std::min(relocation.bytes, 8u));
    }
  }
  for (const auto& [function, slot] : slots_) std::memcpy(host + slot, &slot, sizeof slot);
}

}  // namespace vgpu::emulator
