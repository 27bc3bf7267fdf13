#include "stub/emulator/ptx/decode/linker.h"

#include <algorithm>

#include "stub/emulator/ptx/decode/decoder.h"

namespace vgpu::emulator {
namespace {

// The most registers that ptxas gives a thread: at most .maxnreg, and few enough that .minnctapersm blocks (default 1) of .maxntid threads
// fit on a multiprocessor. A block's warps are rounded up to a multiple of the four schedulers (CUDA 13.0, for 9.0).
uint32_t mostRegisters(const FunctionDecl& decl) {
  constexpr uint32_t leastLimit = 16, most = 255, perMultiprocessor = 65536, unit = 8, schedulers = 4, warpThreads = 32;
  uint32_t limit = decl.mostRegisters ? decl.mostRegisters : most;
  if (decl.maxThreads) {
    const uint32_t warps = (decl.maxThreads + warpThreads - 1) / warpThreads, even = (warps + schedulers - 1) / schedulers * schedulers;
    limit = std::min(limit, perMultiprocessor / std::max(decl.blocksAtOnce, 1u) / (even * warpThreads) / unit * unit);
  }
  return std::max(limit, leastLimit);
}

}  // namespace

Linker::Linker(const Declarations& declarations, const Image& image, int architecture)
    : moduleDeclarations(declarations), image(image), deviceArchitecture(architecture) {}

std::unique_ptr<Kernel> Linker::link(const FunctionDecl& decl) {
  linked = std::make_unique<Kernel>();
  linked->name = decl.name;
  linked->files = moduleDeclarations.files;
  for (const ParameterDecl& parameter : decl.parameters) {
    linked->parameters.push_back({parameter.offset, parameter.bytes});
    linked->parameterBytes = parameter.offset + parameter.bytes;
  }
  linked->constantRange = image.constantRange();
  linked->entry = function(decl.name, decl.line);
  decodePending();
  if (callsIndirectly) {
    noteAddresses();
    for (size_t known = 0; known < taken.size();) {  // candidates may take further addresses
      known = taken.size();
      addIndirectCandidates();
      decodePending();
    }
  }
  finishShared();

  uint32_t registers = 0;
  for (const auto& each : linked->functions) registers = std::max(registers, each->registers);
  linked->attributes = {decl.maxThreads ? decl.maxThreads : 1024,
                        static_cast<uint32_t>(sharedTop),
                        linked->entry->localBytes,
                        static_cast<uint32_t>(image.constantBytes()),
                        std::clamp<uint32_t>(registers, 16, mostRegisters(decl)),
                        static_cast<uint32_t>(moduleDeclarations.target),
                        decl.cluster,
                        decl.explicitCluster && decl.cluster[0] == 0};
  return std::move(linked);
}

void Linker::decodePending() {
  while (!pending.empty()) {
    const Pending next = pending.front();
    pending.pop_front();
    optional = next.optional;
    try {
      Decoder decoder(*this, *next.decl, *next.function);
      decoder.run();
      if (!decoder.ir().dynamicShared.empty()) dynamicUses.push_back({next.function, decoder.ir().dynamicShared});
    } catch (const PtxError& error) {
      if (!next.optional) throw;
      next.function->code.clear();
      next.function->refusal = error.what();
    }
  }
  optional = false;
}

const FunctionDecl* Linker::findFunction(std::string_view name) const {
  const auto alias = moduleDeclarations.aliases.find(name);
  const auto found =
      moduleDeclarations.functionIndex.find(alias == moduleDeclarations.aliases.end() ? name : alias->second);
  return found == moduleDeclarations.functionIndex.end() ? nullptr : &moduleDeclarations.functions[found->second];
}

const Function* Linker::function(std::string_view name, int line) {
  const FunctionDecl* decl = findFunction(name);
  if (!decl || !decl->hasBody)
    throw PtxError(PtxError::Kind::unresolved, line, "function '" + std::string(name) + "' is not defined");
  if (const auto known = functions.find(decl); known != functions.end()) return known->second;
  auto made = std::make_unique<Function>();
  Function* function = made.get();
  function->name = decl->name;
  linked->functions.push_back(std::move(made));
  functions[decl] = function;
  pending.push_back({decl, function, optional});
  return function;
}

// An indirect call may reach every function whose address the module takes: in an initialiser, or in any body. Bodies that this kernel does
// not reach are only searched for the forms that compilers write.
void Linker::noteAddresses() {
  const auto note = [&](const VariableDecl& variable) {
    for (const Relocation& relocation : variable.relocations) taken.insert(relocation.symbol);
  };
  for (const VariableDecl& variable : moduleDeclarations.variables) note(variable);
  for (const FunctionDecl& decl : moduleDeclarations.functions) {
    for (const VariableDecl& variable : decl.statics) note(variable);
    for (size_t at = decl.body.find("mov."); at != std::string_view::npos; at = decl.body.find("mov.", at + 4)) {
      const std::string_view text = decl.body.substr(at, decl.body.find(';', at) - at);
      const size_t comma = text.find(',');
      if (comma == std::string_view::npos) continue;
      const size_t begin = text.find_first_not_of(" \t\n", comma + 1);
      if (begin == std::string_view::npos || text[begin] == '%' || text[begin] == '{') continue;
      const std::string_view name = text.substr(begin, text.find_first_of(" \t\n+", begin) - begin);
      if (moduleDeclarations.functionIndex.contains(name)) taken.insert(name);
    }
  }
}

void Linker::addIndirectCandidates() {
  optional = true;
  for (const std::string_view name : taken) {
    const FunctionDecl* decl = findFunction(name);
    if (!decl || !decl->hasBody || decl->isKernel) continue;
    linked->byAddress[functionAddress(*decl)] = function(name, decl->line);
  }
}

uint64_t Linker::functionAddress(const FunctionDecl& decl) const { return image.functionAddress(decl); }

const VariableDecl* Linker::findVariable(std::string_view name) const {
  const auto found = moduleDeclarations.variableIndex.find(name);
  return found == moduleDeclarations.variableIndex.end() ? nullptr : &moduleDeclarations.variables[found->second];
}

uint64_t Linker::variableAddress(std::string_view name) const { return image.variableAddress(name); }

uint64_t Linker::staticAddress(const FunctionDecl& decl, std::string_view name, Space space, size_t number) const {
  const auto address = image.findStatic(decl, name, space, number);
  if (!address)
    throw PtxError(PtxError::Kind::unsupported, decl.bodyLine,
                   "the address of variable '" + std::string(name) + "' in '" + decl.name + "'");
  return *address;
}

uint64_t Linker::sharedOffset(const std::string& uniqueName, uint64_t bytes, uint32_t align) {
  const auto [entry, added] = shared.emplace(uniqueName, 0);
  if (added) {
    entry->second = (sharedTop + align - 1) / align * align;
    sharedTop = entry->second + bytes;
    if (sharedTop > (1u << 24))
      throw PtxError(PtxError::Kind::invalid, 0,
                     "kernel '" + linked->name + "' has more than 16 MiB of shared variables");
  }
  return entry->second;
}

void Linker::finishShared() {
  const uint64_t align = std::max<uint64_t>(dynamicAlign, 16);
  linked->dynamicSharedOffset = (sharedTop + align - 1) / align * align;
  for (const DynamicUse& use : dynamicUses)
    for (const int index : use.constants) use.function->constants[index].lo += linked->dynamicSharedOffset;
  for (const auto& function : linked->functions) function->spreadConstants();
}

}  // namespace vgpu::emulator
