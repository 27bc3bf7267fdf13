#include "loaded-module.h"

#include <algorithm>
#include <cstdio>

#include "container.h"
#include "driver.h"

namespace vgpu::emulator::api {
namespace {

constexpr uint64_t pageBytes = 4096;

Refusal refusalFor(const PtxError& error) {
  return {codeOf(error), error.what()};  // it names the line
}

// What the driver answers before it looks at the code: text that is no PTX, a version or a target that is too new.
void checkHeader(std::string_view ptx, int architecture) {
  constexpr int newest = 90;  // PTX ISA 9.0, CUDA 13.0
  size_t at = ptx.find(".version");
  if (at == std::string_view::npos) refuse(CUDA_ERROR_INVALID_IMAGE, "the text has no .version: it is not PTX");
  std::string number(ptx.substr(at + 8, 16));
  int major = 0, minor = 0;
  if (std::sscanf(number.c_str(), " %d.%d", &major, &minor) == 2 && major * 10 + minor > newest) {
    refuse(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
           "the PTX is of version " + std::to_string(major) + "." + std::to_string(minor) + ", newer than 9.0");
  }
  size_t target = ptx.find(".target"), sm = ptx.find("sm_", target == std::string_view::npos ? 0 : target);
  int wanted = 0;
  if (target == std::string_view::npos || sm == std::string_view::npos) return;
  std::string digits(ptx.substr(sm + 3, 8));
  if (std::sscanf(digits.c_str(), "%d", &wanted) != 1 || wanted <= architecture) return;
  refuse(CUDA_ERROR_INVALID_PTX, "the PTX is for sm_" + std::to_string(wanted) + ", newer than this device, sm_" +
                                     std::to_string(architecture));
}

void report(const Refusal& refusal, JitLog& log) {
  log.error(refusal.message);
  if (!refusal.message.empty()) std::fprintf(stderr, "vgpu emulator: module refused: %s\n", refusal.message.c_str());
}

}  // namespace

CUresult codeOf(const PtxError& error) {
  return error.kind == PtxError::Kind::unsupported ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_PTX;
}

PlacedRange::PlacedRange(Context& context, VaRange& place, uint64_t bytes, std::optional<uint64_t> managedOffset)
    : driver_(context.driver),
      place_(place),
      bytes_(alignUp(bytes, pageBytes)),
      managedOffset_(managedOffset.value_or(bytes_)) {
  lease_.emplace(context.device, bytes_);
  std::optional<uint64_t> base = place.take(alignUp(std::max(bytes_, pageBytes), pieceBytes), pieceBytes);
  if (!base) {
    lease_.reset();
    refuse(CUDA_ERROR_OUT_OF_MEMORY);
  }
  base_ = *base;
  try {
    if (bytes_ != 0) view_ = managedOffset ? HostView::anonymousAt(base_, bytes_) : HostView::anonymous(bytes_);
  } catch (...) {
    place.give(base_);
    throw;
  }
  const auto map = [&](MappingKind kind, uint64_t from, uint64_t to, Context* owner, uint64_t devices) {
    if (from == to) return;
    driver_.space.map(Mapping{.base = base_ + from,
                              .bytes = to - from,
                              .kind = kind,
                              .view = view_,
                              .host = view_->base() + from,
                              .device = &context.device,
                              .context = owner,
                              .readers = devices,
                              .writers = devices},
                      CUDA_ERROR_UNKNOWN);
  };
  const uint64_t device = context.device.bit();
  map(MappingKind::image, 0, managedOffset ? managedOffset_ : bytes, &context, device);
  // Nobody's to free: it goes with the module.
  map(MappingKind::managed, managedOffset_, managedOffset ? bytes : bytes_, nullptr, ~uint64_t{0});
}

void PlacedRange::release() {
  if (!lease_) return;
  lease_.reset();
  if (managedOffset_ != 0) driver_.space.unmap(base_, MappingKind::image, CUDA_ERROR_UNKNOWN);
  if (managedOffset_ != bytes_) driver_.space.unmap(base_ + managedOffset_, MappingKind::managed, CUDA_ERROR_UNKNOWN);
  place_.give(base_);
}

LoadedModule::LoadedModule(Context& owner, std::string_view ptx) : context(owner) {
  checkHeader(ptx, owner.device.architecture());
  try {
    module = Module::parse(ptx, owner.device.architecture());
  } catch (const PtxError& error) {
    throw refusalFor(error);
  }
  image_ =
      std::make_unique<PlacedRange>(owner, owner.driver.space.images, module->imageBytes(), module->managedOffset());
  module->place(image_->base(), image_->host());
  names_ = module->kernelNames();
}

const Variable* LoadedModule::findVariable(std::string_view name) const {
  for (const Variable& variable : module->variables()) {
    if (variable.name == name) return &variable;
  }
  return nullptr;
}

const Kernel& LoadedModule::decode(const std::string& name) {
  std::lock_guard lock(mutex_);
  if (auto known = undecodable_.find(name); known != undecodable_.end()) throw known->second;
  try {
    if (const Kernel* kernel = module->findKernel(name)) return *kernel;
  } catch (const PtxError& error) {
    Refusal refusal = refusalFor(error);
    std::fprintf(stderr, "vgpu emulator: kernel %s: %s\n", name.c_str(), refusal.message.c_str());
    undecodable_.emplace(name, refusal);
    throw refusal;
  }
  refuse(CUDA_ERROR_NOT_FOUND);
}

std::shared_ptr<LoadedModule> loadModule(Context& context, std::span<const std::byte> image, JitLog& log) {
  try {
    auto module = std::make_shared<LoadedModule>(context, findPtx(image, context.device.architecture()));
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
