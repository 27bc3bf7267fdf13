// Green contexts. The program describes resources by the operations that made them (intercept/session/green-resources.cc); here they become
// the driver's resources.
#include <algorithm>

#include "cuda-handlers.h"
#include "stub/worker/kinds/kind.h"

namespace vgpu::stub {

namespace {

constexpr uint32_t mostGroups = 1024;  // more than a GPU has multiprocessors

CUresult resourceOf(Execution& on, uint64_t parent, CUdevResource& resource) {
  if (parent == 0) return on.driver.cuDeviceGetDevResource(on.driver.device(on.device()), &resource, CU_DEV_RESOURCE_TYPE_SM);
  auto green = fromWire<CUgreenCtx>(on.handles.get(api::Kind::GREEN_CONTEXT, parent));
  return on.driver.cuGreenCtxGetDevResource(green, &resource, CU_DEV_RESOURCE_TYPE_SM);
}

// Splits with the driver: the groups, and last the remainder.
CUresult splitNow(Execution& on, const GreenContexts::SplitKey& key, GreenContexts::Split& parts) {
  auto [parent, flags, least, groups] = key;
  if (groups > mostGroups) return CUDA_ERROR_INVALID_VALUE;
  CUdevResource whole{}, rest{};
  if (CUresult error = resourceOf(on, parent, whole)) return error;
  parts.resize(groups);
  unsigned count = groups;
  if (CUresult error = on.driver.cuDevSmResourceSplitByCount(parts.data(), &count, &whole, &rest, flags, least)) return error;
  parts.resize(std::min(count, groups));
  parts.push_back(rest);
  return CUDA_SUCCESS;
}

// The resources that a descriptor combines, in the program's order.
CUresult chosenOf(Execution& on, const api::FrameReader<api::Cuda::GreenCreateParams>& p, std::vector<CUdevResource>& chosen,
                  std::shared_ptr<const GreenContexts::Split>& split) {
  auto parts = p.getParts();
  if (parts.size() == 0) {
    chosen.resize(1);
    return resourceOf(on, p.getParent(), chosen[0]);
  }
  if (parts.size() > mostGroups + 1) return CUDA_ERROR_INVALID_VALUE;
  GreenContexts::SplitKey key{p.getParent(), p.getFlags(), p.getLeast(), p.getGroups()};
  if (CUresult error = on.greenContexts.split(on, key, split)) return error;
  for (unsigned i = 0; i < parts.size(); ++i) {
    const uint32_t part = parts[i];
    const bool isRest = part == p.getGroups();
    if (!isRest && part + 1 >= split->size()) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;  // this GPU makes fewer groups than the one
                                                                                                 // before
    chosen.push_back(isRest ? split->back() : (*split)[part]);
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult greenResource(Execution& on, const api::FrameReader<api::Cuda::GreenResourceParams>&, Reply& reply) {
  CUdevResource resource{};
  if (CUresult error = resourceOf(on, 0, resource)) return error;
  auto results = reply.init<api::Cuda::GreenResourceResults>();
  results.setMultiprocessors(resource.sm.smCount);
  results.setLeast(resource.sm.minSmPartitionSize);
  results.setAlignment(resource.sm.smCoscheduledAlignment);
  return CUDA_SUCCESS;
}

CUresult greenSplit(Execution& on, const api::FrameReader<api::Cuda::GreenSplitParams>& p, Reply& reply) {
  GreenContexts::Split parts;
  if (CUresult error = splitNow(on, {p.getParent(), p.getFlags(), p.getLeast(), p.getGroups()}, parts)) return error;
  std::vector<uint32_t> numbers;
  for (auto& part : parts) {
    if (part.type != CU_DEV_RESOURCE_TYPE_SM) part.sm = {};  // nothing remains
    numbers.insert(numbers.end(), {part.sm.smCount, part.sm.minSmPartitionSize, part.sm.smCoscheduledAlignment});
  }
  reply.init<api::Cuda::GreenSplitResults>().setParts(kj::arrayPtr(numbers.data(), numbers.size()));
  return CUDA_SUCCESS;
}

// After a resume on another GPU the same part may have more multiprocessors than the program knows, never fewer.
CUresult greenCreate(Execution& on, const api::FrameReader<api::Cuda::GreenCreateParams>& p, Reply& reply) {
  std::shared_ptr<const GreenContexts::Split> split;
  std::vector<CUdevResource> chosen;
  if (CUresult error = chosenOf(on, p, chosen, split)) return error;
  CUdevResourceDesc descriptor = nullptr;
  if (CUresult error = on.driver.cuDevResourceGenerateDesc(&descriptor, chosen.data(), static_cast<unsigned>(chosen.size()))) return error;
  CUgreenCtx real = nullptr;
  CUdevice device = on.driver.device(on.device());
  if (CUresult error = on.driver.cuGreenCtxCreate(&real, descriptor, device, CU_GREEN_CTX_DEFAULT_STREAM)) return error;
  CUdevResource has{};
  CUresult result = on.driver.cuGreenCtxGetDevResource(real, &has, CU_DEV_RESOURCE_TYPE_SM);
  if (result == CUDA_SUCCESS && has.sm.smCount < p.getMultiprocessors()) result = CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  if (result != CUDA_SUCCESS) return on.driver.cuGreenCtxDestroy(real), result;
  on.handles.add(api::Kind::GREEN_CONTEXT, p.getGreen(), toWire(real));
  on.greenContexts.add(p.getGreen(), std::move(split));
  auto results = reply.init<api::Cuda::GreenCreateResults>();
  results.setMultiprocessors(has.sm.smCount);
  results.setLeast(has.sm.minSmPartitionSize);
  results.setAlignment(has.sm.smCoscheduledAlignment);
  return CUDA_SUCCESS;
}

CUresult greenDestroy(Execution& on, const api::FrameReader<api::Cuda::GreenDestroyParams>& p, Reply&) {
  auto real = fromWire<CUgreenCtx>(on.handles.take(api::Kind::GREEN_CONTEXT, p.getGreen()));
  on.greenContexts.remove(p.getGreen());
  return on.afterAllWork([&on, real] { return on.driver.cuGreenCtxDestroy(real); });
}

// The driver does not synchronize a green context's streams with the default stream, not even those that cuStreamCreate makes there, so all
// are non-blocking.
CUresult greenStreamCreate(Execution& on, const api::FrameReader<api::Cuda::GreenStreamCreateParams>& p, Reply&) {
  auto green = fromWire<CUgreenCtx>(on.handles.get(api::Kind::GREEN_CONTEXT, p.getGreen()));
  CUstream stream = nullptr;
  if (CUresult error = on.driver.cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, p.getPriority())) return error;
  on.handles.add(api::Kind::STREAM, p.getStream(), toWire(stream));
  on.greenContexts.addStream(p.getStream());
  return CUDA_SUCCESS;
}

CUresult GreenContexts::split(Execution& on, const SplitKey& key, std::shared_ptr<const Split>& found) {
  found = splits[key].lock();
  if (found != nullptr) return CUDA_SUCCESS;
  auto made = std::make_shared<Split>();
  if (CUresult error = splitNow(on, key, *made)) return splits.erase(key), error;
  splits[key] = found = std::move(made);
  return CUDA_SUCCESS;
}

void GreenContexts::remove(uint64_t green) {
  splitOf.erase(green);
  std::erase_if(splits, [&](auto& one) { return one.second.expired() || std::get<0>(one.first) == green; });
}

void GreenContexts::drop() {
  splitOf.clear();
  splits.clear();
  streams.clear();
}

// The green contexts themselves are destroyed after their streams, in the order of the table of entries.
const KindModule greenContextKind{.name = "greenContexts",
                                  .drop = [](Execution& on) { on.greenContexts.drop(); },
                                  .destroy = [](Execution& on) { return on.greenContexts.drop(), CUDA_SUCCESS; }};

}  // namespace vgpu::stub
