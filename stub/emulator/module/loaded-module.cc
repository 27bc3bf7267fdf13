#include "stub/emulator/module/loaded-module.h"

#include <cstdio>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/module/container.h"

namespace vgpu::emulator::api {
namespace {

constexpr uint64_t hostAlignment = 64;  // of a variable's bytes, for vector and atomic accesses

Refusal refusalFor(const PtxError& error) {
  return {codeOf(error), error.what()};  // the text names the line
}

// Errors that the driver returns before it reads the code: text that is not PTX, or that is for a later device.
void checkHeader(std::string_view ptx, int architecture) {
  if (ptx.find(".version") == std::string_view::npos) refuse(CUDA_ERROR_INVALID_IMAGE, "the text has no .version: it is not PTX");
  size_t target = ptx.find(".target"), sm = ptx.find("sm_", target == std::string_view::npos ? 0 : target);
  int wanted = 0;
  if (target == std::string_view::npos || sm == std::string_view::npos) return;
  std::string digits(ptx.substr(sm + 3, 8));
  if (std::sscanf(digits.c_str(), "%d", &wanted) != 1 || wanted <= architecture) return;
  refuse(CUDA_ERROR_INVALID_PTX,
         "the PTX is for sm_" + std::to_string(wanted) + ", newer than this device, sm_" + std::to_string(architecture));
}

void report(const Refusal& refusal, JitLog& log) {
  log.error(refusal.message);
  if (!refusal.message.empty()) std::fprintf(stderr, "vgpu emulator: module refused: %s\n", refusal.message.c_str());
}

}  // namespace

CUresult codeOf(const PtxError& error) {
  return error.kind == PtxError::Kind::unsupported ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_PTX;
}

PlacedRange::PlacedRange(Context& context, PlacePool& pool, uint64_t bytes, bool managed)
    : driver(context.driver),
      pool(pool),
      size(bytes),
      kind(managed ? MappingKind::managed : MappingKind::image),
      address(pool.take(bytes, 1)) {
  try {
    hostView = managed ? HostView::anonymousAt(address, alignUp(bytes, hostPageBytes)) : HostView::anonymous(bytes);
    hostAddress = hostView->base();
    map(context);
  } catch (...) {
    pool.give(address);
    throw;
  }
}

PlacedRange::PlacedRange(Context& context, PlacePool& pool, uint64_t bytes, uint64_t alignment,
                         std::shared_ptr<HostView> view, uint64_t offset)
    : driver(context.driver),
      pool(pool),
      size(bytes),
      kind(MappingKind::image),
      address(pool.take(bytes, alignment)),
      hostView(std::move(view)),
      hostAddress(hostView->base() + offset) {
  map(context);
}

void PlacedRange::map(Context& context) {
  const bool managed = kind == MappingKind::managed;
  const uint64_t devices = managed ? ~uint64_t{0} : context.device.bit();
  driver.space.map(Mapping{.base = address,
                           .bytes = size,
                           .kind = kind,
                           .view = hostView,
                           .host = hostAddress,
                           .device = &context.device,
                           .context = managed ? nullptr : &context,  // without it cuMemFree refuses; it ends with the module
                           .readers = devices,
                           .writers = devices},
                   CUDA_ERROR_UNKNOWN);
}

void PlacedRange::release() {
  if (released) return;
  released = true;
  driver.space.unmap(address, kind, CUDA_ERROR_UNKNOWN);
  pool.give(address);
}

LoadedModule::LoadedModule(Context& owner, std::string_view ptx, std::shared_ptr<PlacedRange>* shared) : context(owner) {
  checkHeader(ptx, owner.device.architecture());
  try {
    module = Module::parse(ptx, owner.device.architecture());
  } catch (const PtxError& error) {
    throw refusalFor(error);
  }
  placeSections(shared);
  names = module->kernelNames();
}

// All sections share one host mapping, because the number of mappings of a process is limited.
void LoadedModule::placeSections(std::shared_ptr<PlacedRange>* shared) {
  uint64_t bytes = 0;
  for (const Section& section : module->sections())
    if (!section.managed) bytes = alignUp(bytes, hostAlignment) + section.bytes;
  const std::shared_ptr<HostView> view = bytes == 0 ? nullptr : HostView::anonymous(bytes);
  std::vector<SectionPlace> places;
  uint64_t offset = 0;
  for (const Section& section : module->sections()) {
    if (section.managed) {
      const bool hasValues = shared != nullptr && *shared != nullptr;
      image.push_back(hasValues ? *shared : std::make_shared<PlacedRange>(context, context.managedVariables, section.bytes, true));
      if (shared != nullptr) *shared = librarys = image.back();
      places.push_back({image.back()->base(), image.back()->host(), hasValues});
      continue;
    }
    offset = alignUp(offset, hostAlignment);
    image.push_back(std::make_shared<PlacedRange>(context, context.variables, section.bytes, section.align, view, offset));
    places.push_back({image.back()->base(), image.back()->host()});
    offset += section.bytes;
  }
  module->place(places);
}

void LoadedModule::release() {
  references.end(context.driver);
  for (const std::shared_ptr<PlacedRange>& section : image)
    if (section != librarys) section->release();
}

const Variable* LoadedModule::findVariable(std::string_view name) const {
  for (const Variable& variable : module->variables()) {
    if (variable.name == name && !isReference(variable.type)) return &variable;
  }
  return nullptr;
}

const Variable* LoadedModule::findReference(std::string_view name, Type type) const {
  for (const Variable& variable : module->variables()) {
    if (variable.name == name && variable.type == type) return &variable;
  }
  return nullptr;
}

const Variable* LoadedModule::findReference(uint64_t address) const {
  for (const Variable& variable : module->variables()) {
    if (isReference(variable.type) && addressOf(variable) == address) return &variable;
  }
  return nullptr;
}

const Kernel& LoadedModule::decode(const std::string& name) {
  std::lock_guard lock(mutex);
  if (auto known = undecodable.find(name); known != undecodable.end()) throw known->second;
  try {
    if (const Kernel* kernel = module->findKernel(name)) return *kernel;
  } catch (const PtxError& error) {
    Refusal refusal = refusalFor(error);
    std::fprintf(stderr, "vgpu emulator: kernel %s: %s\n", name.c_str(), refusal.message.c_str());
    undecodable.emplace(name, refusal);
    throw refusal;
  }
  refuse(CUDA_ERROR_NOT_FOUND);
}

std::shared_ptr<LoadedModule> loadModule(Context& context, std::span<const std::byte> image, JitLog& log,
                                         std::shared_ptr<PlacedRange>* shared) {
  try {
    auto module = std::make_shared<LoadedModule>(context, findPtx(image, context.device.architecture()), shared);
    context.driver.modules.add(module);
    return module;
  } catch (const Refusal& refusal) {
    report(refusal, log);
    throw;
  }
}

std::shared_ptr<LoadedModule> loadModule(Context& context, const void* image, JitLog& log) {
  require(image != nullptr);
  std::span<const std::byte> bytes;
  try {
    bytes = imageAt(image);
  } catch (const Refusal& refusal) {
    report(refusal, log);
    throw;
  }
  return loadModule(context, bytes, log);
}

}  // namespace vgpu::emulator::api
