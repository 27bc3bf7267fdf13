// Makes a kernel of its declaration: decodes it and every function it may reach, and lays out its shared memory.
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
  uint64_t staticAddress(const FunctionDecl&, std::string_view name) const;
  // The place of a shared variable in this kernel's blocks; extern ones begin where the others end.
  uint64_t sharedOffset(const std::string& uniqueName, uint64_t bytes, uint32_t align);
  void noteDynamicShared(uint32_t align) { dynamicAlign_ = std::max(dynamicAlign_, align); }
  void noteIndirectCall() { callsIndirectly_ = true; }
  const Declarations& declarations() const { return declarations_; }
  const Kernel& kernel() const { return *kernel_; }
  int architecture() const { return architecture_; }

 private:
  void decodePending();
  void addIndirectCandidates();
  void finishShared();

  const Declarations& declarations_;
  const Image& image_;
  int architecture_;
  std::unique_ptr<Kernel> kernel_;
  struct Pending {
    const FunctionDecl* decl;
    Function* function;
    bool optional;  // reached through an address alone: refused when called, not now
  };
  std::deque<Pending> pending_;
  std::unordered_map<const FunctionDecl*, Function*> functions_;
  std::unordered_map<std::string, uint64_t> shared_;
  struct DynamicUse {
    Function* function;
    std::vector<int> constants;
  };
  std::vector<DynamicUse> dynamicUses_;
  uint64_t sharedTop_ = 0;
  uint32_t dynamicAlign_ = 0;
  bool callsIndirectly_ = false;
  bool optional_ = false;
};

}  // namespace vgpu::emulator
