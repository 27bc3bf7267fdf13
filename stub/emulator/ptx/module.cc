#include "stub/emulator/ptx/module.h"

#include <mutex>

#include "stub/emulator/ptx/decode/linker.h"
#include "stub/emulator/ptx/run/builtins.h"
#include "stub/emulator/ptx/text-linker.h"
#include "stub/emulator/ptx/text/declarations.h"
#include "stub/emulator/ptx/text/image.h"

namespace vgpu::emulator {
namespace {

constexpr int newestVersion = 99;  // .version 9.x

constexpr uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

class ParsedModule : public Module {
 public:
  ParsedModule(std::string_view text, int architecture)
      : ownText(text), architecture(architecture), declarations(scan(ownText)), image(declarations) {
    if (declarations.version > newestVersion)
      throw PtxError(PtxError::Kind::unsupported, 1,
                     ".version " + std::to_string(declarations.version / 10) + ".x is newer than 9");
    requireFunctions();
    if (declarations.target > architecture)
      throw PtxError(PtxError::Kind::unsupported, 1,
                     ".target sm_" + std::to_string(declarations.target) + " is newer than this device's sm_" +
                         std::to_string(architecture));
  }

  std::span<const Variable> variables() const override { return image.variables(); }

  std::vector<std::string> kernelNames() const override {
    std::vector<std::string> names;
    for (const FunctionDecl& decl : declarations.functions)
      if (decl.isKernel && decl.hasBody) names.push_back(decl.name);
    return names;
  }

  std::span<const Section> sections() const override { return image.sections(); }
  void place(std::span<const SectionPlace> places) override { image.place(places); }
  uint64_t addressOf(const Variable& variable) const override { return image.addressOf(variable); }

  bool usesHeap() const override { return heapIsUsed; }

  std::string_view kernelNameAt(uint64_t address) const override {
    const FunctionDecl* decl = image.functionAt(address);
    return decl && decl->isKernel && decl->hasBody ? std::string_view(decl->name) : std::string_view();
  }

  const Kernel* findKernel(std::string_view name) override {
    const auto found = declarations.functionIndex.find(name);
    if (found == declarations.functionIndex.end()) return nullptr;
    const FunctionDecl& decl = declarations.functions[found->second];
    if (!decl.isKernel || !decl.hasBody) return nullptr;
    if (!image.isPlaced())
      throw PtxError(PtxError::Kind::invalid, decl.line,
                     "kernel '" + decl.name + "' was requested before the module had an address");
    const std::lock_guard lock(mutex);
    auto& kernel = kernels[&decl];
    if (!kernel) kernel = Linker(declarations, image, architecture).link(decl);
    return kernel.get();
  }

 private:
  // Refuses a function that is called but not defined, with the text of the driver's compiler.
  void requireFunctions() const {
    for (const auto& [name, index] : declarations.functionIndex) {
      const FunctionDecl& function = declarations.functions[index];
      if (!function.isExtern || function.hasBody || isBuiltin(name) || !refersTo(declarations, name)) continue;
      throw PtxError(PtxError::Kind::unresolved, 0,
                     "ptxas fatal   : Unresolved extern function '" + function.name + "'");
    }
  }

  std::string ownText;  // the text that the declarations point into
  int architecture;
  Declarations declarations;
  bool heapIsUsed = refersTo(declarations, "malloc") || refersTo(declarations, "__cudaCDP2Malloc");
  Image image;
  std::mutex mutex;  // guards kernels
  std::unordered_map<const FunctionDecl*, std::unique_ptr<Kernel>> kernels;
};

}  // namespace

uint64_t Module::imageBytes() const {
  uint64_t bytes = 0;
  for (const Section& section : sections()) bytes = alignUp(bytes, section.align) + section.bytes;
  return bytes;
}

void Module::placeTogether(uint64_t base, std::byte* host) {
  std::vector<SectionPlace> places;
  uint64_t offset = 0;
  for (const Section& section : sections()) {
    offset = alignUp(offset, section.align);
    places.push_back({base + offset, host + offset});
    offset += section.bytes;
  }
  place(places);
}

std::shared_ptr<Module> Module::parse(std::string_view text, int architecture) {
  // A fatbinary's PTX ends with a zero byte.
  while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
  return std::make_shared<ParsedModule>(text, architecture);
}

}  // namespace vgpu::emulator
