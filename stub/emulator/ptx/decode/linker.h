// Builds a kernel from its declaration: decodes it and every function that it may call, and lays out its shared memory.
#pragma once

#include <deque>
#include <set>

#include "stub/emulator/ptx/run/program.h"
#include "stub/emulator/ptx/text/image.h"

namespace vgpu::emulator {

class Linker {
 public:
  Linker(const Declarations&, const Image&, int architecture);
  std::unique_ptr<Kernel> link(const FunctionDecl&);

  // ---- for decoders
  const Function* function(std::string_view name, int line);
  const FunctionDecl* findFunction(std::string_view name) const;
  uint64_t functionAddress(const FunctionDecl&) const;
  const VariableDecl* findVariable(std::string_view name) const;
  uint64_t variableAddress(std::string_view name) const;
  // The address of the function's variable with that name and space; `number` selects among several, in text order.
  uint64_t staticAddress(const FunctionDecl&, std::string_view name, Space, size_t number) const;
  // The offset of a shared variable in this kernel's blocks; extern ones begin after the others.
  uint64_t sharedOffset(const std::string& uniqueName, uint64_t bytes, uint32_t align);
  void noteDynamicShared(uint32_t align) { dynamicAlign = std::max(dynamicAlign, align); }
  void noteIndirectCall() { callsIndirectly = true; }
  // An indirect call may reach the function.
  void noteAddress(const FunctionDecl& decl) { taken.insert(decl.name); }
  const Declarations& declarations() const { return moduleDeclarations; }
  const Kernel& kernel() const { return *linked; }
  int architecture() const { return deviceArchitecture; }

 private:
  void decodePending();
  void noteAddresses();
  void addIndirectCandidates();
  void finishShared();

  const Declarations& moduleDeclarations;
  const Image& image;
  int deviceArchitecture;
  std::unique_ptr<Kernel> linked;
  struct Pending {
    const FunctionDecl* decl;
    Function* function;
    bool optional;  // reached only through an address: if it cannot be decoded, a call of it is refused, not the kernel
  };
  std::deque<Pending> pending;
  std::unordered_map<const FunctionDecl*, Function*> functions;
  std::unordered_map<std::string, uint64_t> shared;
  struct DynamicUse {
    Function* function;
    std::vector<int> constants;
  };
  std::vector<DynamicUse> dynamicUses;
  uint64_t sharedTop = 0;
  uint32_t dynamicAlign = 0;
  bool callsIndirectly = false;
  std::set<std::string_view> taken;  // functions whose address is taken
  bool optional = false;
};

}  // namespace vgpu::emulator
