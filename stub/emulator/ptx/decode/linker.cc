#include "stub/emulator/ptx/decode/linker.h"

#include <algorithm>

#include "stub/emulator/ptx/decode/decoder.h"

namespace vgpu::emulator {

Linker::Linker(const Declarations& declarations, const Image& image, int architecture)
    : declarations_(declarations), image_(image), architecture_(architecture) {}

std::unique_ptr<Kernel> Linker::link(const FunctionDecl& decl) {
  kernel_ = std::make_unique<Kernel>();
  kernel_->name = decl.name;
  kernel_->files = declarations_.files;
  for (const ParameterDecl& parameter : decl.parameters) {
    kernel_->parameters.push_back({parameter.offset, parameter.bytes});
    kernel_->parameterBytes = parameter.offset + parameter.bytes;
  }
  kernel_->constantRange = image_.constantRange();
  kernel_->entry = function(decl.name, decl.line);
  decodePending();
  if (callsIndirectly_) {
    addIndirectCandidates();
    decodePending();
  }
  finishShared();

  uint32_t registers = 0;
  for (const auto& each : kernel_->functions) registers = std::max(registers, each->registers);
  kernel_->attributes = {decl.maxThreads ? decl.maxThreads : 1024,
                         static_cast<uint32_t>(sharedTop_),
                         kernel_->entry->localBytes,
                         static_cast<uint32_t>(image_.constantBytes()),
                         std::clamp<uint32_t>(registers, 16, 255),
                         static_cast<uint32_t>(declarations_.target)};
  return std::move(kernel_);
}

void Linker::decodePending() {
  while (!pending_.empty()) {
    const Pending next = pending_.front();
    pending_.pop_front();
    optional_ = next.optional;
    try {
      Decoder decoder(*this, *next.decl, *next.function);
      decoder.run();
      if (!decoder.ir().dynamicShared.empty()) dynamicUses_.push_back({next.function, decoder.ir().dynamicShared});
    } catch (const PtxError& error) {
      if (!next.optional) throw;
      next.function->code.clear();
      next.function->refusal = error.what();
    }
  }
  optional_ = false;
}

const FunctionDecl* Linker::findFunction(std::string_view name) const {
  const auto alias = declarations_.aliases.find(name);
  const auto found = declarations_.functionIndex.find(alias == declarations_.aliases.end() ? name : alias->second);
  return found == declarations_.functionIndex.end() ? nullptr : &declarations_.functions[found->second];
}

const Function* Linker::function(std::string_view name, int line) {
  const FunctionDecl* decl = findFunction(name);
  if (!decl || !decl->hasBody)
    throw PtxError(PtxError::Kind::unresolved, line, "function '" + std::string(name) + "' is not defined");
  if (const auto known = functions_.find(decl); known != functions_.end()) return known->second;
  auto made = std::make_unique<Function>();
  Function* function = made.get();
  function->name = decl->name;
  kernel_->functions.push_back(std::move(made));
  functions_[decl] = function;
  pending_.push_back({decl, function, optional_});
  return function;
}

// An indirect call may reach every function whose address the module takes: in an initialiser, or in any body.
void Linker::addIndirectCandidates() {
  std::set<std::string_view> taken;
  const auto note = [&](const VariableDecl& variable) {
    for (const Relocation& relocation : variable.relocations) taken.insert(relocation.symbol);
  };
  for (const VariableDecl& variable : declarations_.variables) note(variable);
  for (const FunctionDecl& decl : declarations_.functions) {
    for (const VariableDecl& variable : decl.statics) note(variable);
    for (size_t at = decl.body.find("mov."); at != std::string_view::npos; at = decl.body.find("mov.", at + 4)) {
      const std::string_view text = decl.body.substr(at, decl.body.find(';', at) - at);
      const size_t comma = text.find(',');
      if (comma == std::string_view::npos) continue;
      const size_t begin = text.find_first_not_of(" \t\n", comma + 1);
      if (begin == std::string_view::npos || text[begin] == '%' || text[begin] == '{') continue;
      const std::string_view name = text.substr(begin, text.find_first_of(" \t\n+", begin) - begin);
      if (declarations_.functionIndex.contains(name)) taken.insert(name);
    }
  }
  optional_ = true;
  for (const std::string_view name : taken) {
    const FunctionDecl* decl = findFunction(name);
    if (!decl || !decl->hasBody || decl->isKernel) continue;
    kernel_->byAddress[functionAddress(*decl)] = function(name, decl->line);
  }
}

uint64_t Linker::functionAddress(const FunctionDecl& decl) const { return image_.functionAddress(decl); }

const VariableDecl* Linker::findVariable(std::string_view name) const {
  const auto found = declarations_.variableIndex.find(name);
  return found == declarations_.variableIndex.end() ? nullptr : &declarations_.variables[found->second];
}

uint64_t Linker::variableAddress(std::string_view name) const { return image_.variableAddress(name); }

uint64_t Linker::staticAddress(const FunctionDecl& decl, std::string_view name) const {
  const auto address = image_.findStatic(decl, name);
  if (!address)
    throw PtxError(PtxError::Kind::unsupported, decl.bodyLine,
                   "the place of variable '" + std::string(name) + "' in '" + decl.name + "'");
  return *address;
}

uint64_t Linker::sharedOffset(const std::string& uniqueName, uint64_t bytes, uint32_t align) {
  const auto [entry, added] = shared_.emplace(uniqueName, 0);
  if (added) {
    entry->second = (sharedTop_ + align - 1) / align * align;
    sharedTop_ = entry->second + bytes;
    if (sharedTop_ > (1u << 24))
      throw PtxError(PtxError::Kind::invalid, 0,
                     "kernel '" + kernel_->name + "' has more than 16 MiB of shared variables");
  }
  return entry->second;
}

void Linker::finishShared() {
  const uint64_t align = std::max<uint64_t>(dynamicAlign_, 16);
  kernel_->dynamicSharedOffset = (sharedTop_ + align - 1) / align * align;
  for (const DynamicUse& use : dynamicUses_)
    for (const int index : use.constants) use.function->constants[index].lo += kernel_->dynamicSharedOffset;
  for (const auto& function : kernel_->functions) function->spreadConstants();
}

}  // namespace vgpu::emulator
