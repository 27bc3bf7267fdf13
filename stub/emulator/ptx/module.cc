#include "module.h"

#include <mutex>

#include "builtins.h"
#include "declarations.h"
#include "image.h"
#include "linker.h"
#include "text-linker.h"

namespace vgpu::emulator {
namespace {

constexpr int kNewestVersion = 99;  // .version 9.x

class ParsedModule : public Module {
 public:
  ParsedModule(std::string_view text, int architecture)
      : text_(text), architecture_(architecture), declarations_(scan(text_)), image_(declarations_) {
    if (declarations_.version > kNewestVersion)
      throw PtxError(PtxError::Kind::unsupported, 1,
                     ".version " + std::to_string(declarations_.version / 10) + ".x is newer than 9");
    requireFunctions();
    if (declarations_.target > architecture)
      throw PtxError(PtxError::Kind::unsupported, 1,
                     ".target sm_" + std::to_string(declarations_.target) + " is newer than this device's sm_" +
                         std::to_string(architecture));
  }

  std::span<const Variable> variables() const override { return image_.variables(); }

  std::vector<std::string> kernelNames() const override {
    std::vector<std::string> names;
    for (const FunctionDecl& decl : declarations_.functions)
      if (decl.isKernel && decl.hasBody) names.push_back(decl.name);
    return names;
  }

  uint64_t imageBytes() const override { return image_.bytes(); }

  void place(uint64_t base, std::byte* host) override {
    base_ = base;
    placed_ = true;
    if (image_.bytes()) image_.write(base, host);
  }

  std::optional<uint64_t> managedOffset() const override { return image_.managedOffset(); }
  uint64_t base() const override { return base_; }

  const Kernel* findKernel(std::string_view name) override {
    const auto found = declarations_.functionIndex.find(name);
    if (found == declarations_.functionIndex.end()) return nullptr;
    const FunctionDecl& decl = declarations_.functions[found->second];
    if (!decl.isKernel || !decl.hasBody) return nullptr;
    if (!placed_)
      throw PtxError(PtxError::Kind::invalid, decl.line,
                     "kernel '" + decl.name + "' was asked for before the module had an address");
    const std::lock_guard lock(mutex_);
    auto& kernel = kernels_[&decl];
    if (!kernel) kernel = Linker(declarations_, image_, base_, architecture_).link(decl);
    return kernel.get();
  }

 private:
  // A function that is called and defined nowhere, in the words of the driver's compiler.
  void requireFunctions() const {
    for (const auto& [name, index] : declarations_.functionIndex) {
      const FunctionDecl& function = declarations_.functions[index];
      if (!function.isExtern || function.hasBody || isBuiltin(name) || !refersTo(declarations_, name)) continue;
      throw PtxError(PtxError::Kind::unresolved, 0,
                     "ptxas fatal   : Unresolved extern function '" + function.name + "'");
    }
  }

  std::string text_;
  int architecture_;
  Declarations declarations_;
  Image image_;
  uint64_t base_ = 0;
  bool placed_ = false;
  std::mutex mutex_;  // guards kernels_
  std::unordered_map<const FunctionDecl*, std::unique_ptr<Kernel>> kernels_;
};

}  // namespace

PtxError::PtxError(Kind k, int l, std::string message)
    : std::runtime_error(l ? "PTX line " + std::to_string(l) + ": " + message : std::move(message)), kind(k), line(l) {}

std::shared_ptr<Module> Module::parse(std::string_view text, int architecture) {
  // A fatbinary's PTX ends with a zero byte.
  while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
  return std::make_shared<ParsedModule>(text, architecture);
}

}  // namespace vgpu::emulator
