// Modules in a context: the PTX module, its image in device memory and the handles of its parts.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "stub/emulator/driver/context.h"
#include "stub/emulator/memory/address-space.h"
#include "stub/emulator/memory/texture-reference.h"
#include "stub/emulator/module/jit-options.h"
#include "stub/emulator/ptx/module.h"
#include "stub/emulator/ptx/run/interpreter.h"

namespace vgpu::emulator::api {

// A piece of a context's own device memory: a section of a module's image, or the heap.
class PlacedRange {
 public:
  // Managed memory is mapped in this process at its device address.
  PlacedRange(Context&, PlacePool&, uint64_t bytes, bool managed = false);
  // A piece whose bytes are part of `view`, at `offset`.
  PlacedRange(Context&, PlacePool&, uint64_t bytes, uint64_t alignment, std::shared_ptr<HostView> view,
              uint64_t offset);
  ~PlacedRange() { release(); }
  PlacedRange(const PlacedRange&) = delete;
  // Frees address and memory. The bytes stay mapped in this process while a kernel may still use them.
  void release();
  uint64_t base() const { return address; }
  uint64_t bytes() const { return size; }
  std::byte* host() const { return hostAddress; }

 private:
  void map(Context&);

  Driver& driver;
  PlacePool& pool;
  const uint64_t size;
  const MappingKind kind;
  uint64_t address = 0;
  std::shared_ptr<HostView> hostView;
  std::byte* hostAddress = nullptr;
  bool released = false;
};

struct Function;

struct LoadedModule : std::enable_shared_from_this<LoadedModule> {
  // Parses and places `ptx`. Throws Refusal with the reason in its message. `shared`: the managed variables of a library, which the first
  // of its modules places; null if the module has its own.
  LoadedModule(Context& owner, std::string_view ptx, std::shared_ptr<PlacedRange>* shared = nullptr);

  Context& context;
  CUmodule handle = nullptr;
  std::shared_ptr<Module> module;

  // The kernel's decoded form. Refuses if its body cannot be decoded, and prints the reason on stderr, once for each kernel.
  const Kernel& decode(const std::string& name);
  const std::vector<std::string>& kernelNames() const { return names; }
  const Variable* findVariable(std::string_view name) const;  // null for a texture or surface reference
  const Variable* findReference(std::string_view name, Type) const;
  const Variable* findReference(uint64_t address) const;
  uint64_t addressOf(const Variable& variable) const { return module->addressOf(variable); }
  // The module is unloaded; a graph or a launch may still refer to it.
  void release();
  // The function named `name`; the same object at every call. Refuses with CUDA_ERROR_NOT_FOUND.
  std::shared_ptr<Function> function(const std::string& name);
  ModuleReferences references;

 private:
  void placeSections(std::shared_ptr<PlacedRange>* shared);
  std::vector<std::shared_ptr<PlacedRange>> image;  // one for each section
  std::shared_ptr<PlacedRange> librarys;            // the one that ends with its library, if any
  std::vector<std::string> names;
  std::mutex mutex, functionsMutex;
  std::map<std::string, Refusal> undecodable;
  std::map<std::string, std::weak_ptr<Function>> functions;
};

// The object behind a CUfunction.
struct Function {
  Function(std::shared_ptr<LoadedModule> module, std::string name)
      : context(module->context), module(std::move(module)), name(std::move(name)) {}
  Context& context;
  CUfunction handle = nullptr;
  const std::shared_ptr<LoadedModule> module;
  const std::string name;
  std::atomic<const Kernel*> decoded{nullptr};

  const Kernel& kernel();
  int attribute(CUfunction_attribute);
  void setAttribute(CUfunction_attribute, int value);
  uint32_t dynamicSharedLimit();  // the most bytes that a launch may request
  // The cluster shape of every launch: the kernel's own, or the one that was set. Zeros: the launch chooses.
  std::array<uint32_t, 3> requiredCluster();
  uint32_t mostClusterBlocks() const { return allowsNonPortable ? 16 : 8; }

  std::atomic<int> maxDynamicShared{-1}, carveout{-1};  // -1: never set
  std::atomic<bool> allowsNonPortable{false};
  std::atomic<int> clusterPolicy{0};
  std::array<std::atomic<uint32_t>, 3> setCluster{};
};

// The function for a launch by a CUfunction, which may be a CUkernel.
std::shared_ptr<Function> functionFor(Context&, CUfunction);

// A library: loaded as a module into every context that uses it, at the first use there.
struct LibraryKernel;
struct Library : std::enable_shared_from_this<Library> {
  // Copies the image, unless the caller has promised to preserve it.
  Library(std::span<const std::byte> image, bool preserved)
      : copy(preserved ? std::vector<std::byte>{} : std::vector<std::byte>(image.begin(), image.end())),
        source(preserved ? image : std::span<const std::byte>(copy)) {}
  CUlibrary handle = nullptr;
  std::span<const std::byte> image() const { return source; }
  std::shared_ptr<LoadedModule> moduleIn(Context&);
  std::shared_ptr<LibraryKernel> kernel(Context&, const std::string& name);
  std::vector<std::shared_ptr<LibraryKernel>> allKernels(Context&);

  std::mutex mutex;
  std::map<uint64_t, std::shared_ptr<LoadedModule>> modules;  // by context id
  std::shared_ptr<PlacedRange> managed;                       // managed variables, one set for all modules
  std::map<std::string, std::shared_ptr<LibraryKernel>> kernels;

 private:
  const std::vector<std::byte> copy;
  const std::span<const std::byte> source;
};

struct LibraryKernel {
  LibraryKernel(std::shared_ptr<Library> library, std::string name) : library(library), name(std::move(name)) {}
  const std::weak_ptr<Library> library;
  const std::string name;
  CUkernel handle = nullptr;
  std::shared_ptr<Function> functionIn(Context&) const;
};

// cuFuncGetParamInfo and cuKernelGetParamInfo.
void parameterInfo(const Kernel&, size_t index, size_t* offset, size_t* bytes);

CUresult codeOf(const PtxError&);

// Loads `image` into the context; the reason for a refusal goes to the log and to stderr.
std::shared_ptr<LoadedModule> loadModule(Context&, const void* image, JitLog& log);
std::shared_ptr<LoadedModule> loadModule(Context&, std::span<const std::byte> image, JitLog& log,
                                         std::shared_ptr<PlacedRange>* shared = nullptr);

}  // namespace vgpu::emulator::api
