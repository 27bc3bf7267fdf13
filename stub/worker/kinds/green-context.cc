// Green contexts. The program knows resources by how they came about (intercept/driver/green-resource.cc); here they are the driver's.
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

// The groups that the driver makes, and what remains.
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

// What a descriptor gathers, in the order of the program's.
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
    if (!isRest && part + 1 >= split->size()) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;  // another GPU makes fewer
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

// Another GPU may have the same part with more multiprocessors, never with fewer.
CUresult greenCreate(Execution& on, const api::FrameReader<api::Cuda::GreenCreateParams>& p, Reply& reply) {
  GreenContexts::Known known;
  std::vector<CUdevResource> chosen;
  if (CUresult error = chosenOf(on, p, chosen, known.split)) return error;
  CUdevResourceDesc descriptor = nullptr;
  if (CUresult error = on.driver.cuDevResourceGenerateDesc(&descriptor, chosen.data(), static_cast<unsigned>(chosen.size()))) return error;
  CUdevice device = on.driver.device(on.device());
  if (CUresult error = on.driver.cuGreenCtxCreate(&known.real, descriptor, device, CU_GREEN_CTX_DEFAULT_STREAM)) return error;
  CUdevResource has{};
  CUresult result = on.driver.cuGreenCtxGetDevResource(known.real, &has, CU_DEV_RESOURCE_TYPE_SM);
  if (result == CUDA_SUCCESS && has.sm.smCount < p.getMultiprocessors()) result = CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  if (result != CUDA_SUCCESS) return on.driver.cuGreenCtxDestroy(known.real), result;
  on.handles.add(api::Kind::GREEN_CONTEXT, p.getGreen(), toWire(known.real));
  on.greenContexts.add(p.getGreen(), std::move(known));
  auto results = reply.init<api::Cuda::GreenCreateResults>();
  results.setMultiprocessors(has.sm.smCount);
  results.setLeast(has.sm.minSmPartitionSize);
  results.setAlignment(has.sm.smCoscheduledAlignment);
  return CUDA_SUCCESS;
}

CUresult greenDestroy(Execution& on, const api::FrameReader<api::Cuda::GreenDestroyParams>& p, Reply&) {
  auto known = on.greenContexts.take(p.getGreen());
  on.handles.remove(api::Kind::GREEN_CONTEXT, p.getGreen());
  return on.afterAllWork([&on, real = known.real, order = known.order] {
    CUresult result = order == nullptr ? CUDA_SUCCESS : on.driver.cuEventDestroy_v2(order);
    CUresult destroyed = on.driver.cuGreenCtxDestroy(real);
    return result == CUDA_SUCCESS ? destroyed : result;
  });
}

CUresult greenStreamCreate(Execution& on, const api::FrameReader<api::Cuda::GreenStreamCreateParams>& p, Reply&) {
  auto& known = on.greenContexts.get(p.getGreen());
  CUstream stream = nullptr;
  if (CUresult error = on.driver.cuGreenCtxStreamCreate(&stream, known.real, CU_STREAM_NON_BLOCKING, p.getPriority())) return error;
  on.handles.add(api::Kind::STREAM, p.getStream(), toWire(stream));
  const bool blocks = !p.getIsDefault() && (p.getFlags() & CU_STREAM_NON_BLOCKING) == 0;
  return on.greenContexts.addStream(on, p.getGreen(), p.getStream(), p.getIsDefault(), blocks);
}

GreenContexts::Known& GreenContexts::get(uint64_t green) {
  auto found = live.find(green);
  if (found == live.end()) throw BadHandle{api::Kind::GREEN_CONTEXT, green};
  return found->second;
}

GreenContexts::Known GreenContexts::take(uint64_t green) {
  Known known = std::move(get(green));
  live.erase(green);
  std::erase_if(greenOf, [&](auto& one) { return one.second == green; });
  std::erase_if(splits, [&](auto& one) { return one.second.expired() || std::get<0>(one.first) == green; });
  return known;
}

CUresult GreenContexts::split(Execution& on, const SplitKey& key, std::shared_ptr<const Split>& found) {
  found = splits[key].lock();
  if (found != nullptr) return CUDA_SUCCESS;
  auto made = std::make_shared<Split>();
  if (CUresult error = splitNow(on, key, *made)) return splits.erase(key), error;
  splits[key] = found = std::move(made);
  return CUDA_SUCCESS;
}

CUresult GreenContexts::addStream(Execution& on, uint64_t green, uint64_t stream, bool isDefault, bool blocks) {
  Known& known = get(green);
  streams.insert(stream);
  if (isDefault) known.defaultStream = stream;
  if (!blocks || known.defaultStream == 0) return CUDA_SUCCESS;
  if (known.order == nullptr)
    if (CUresult error = on.driver.cuEventCreate(&known.order, CU_EVENT_DISABLE_TIMING)) return error;
  known.blocking.insert(stream);
  greenOf[stream] = greenOf[known.defaultStream] = green;
  return CUDA_SUCCESS;
}

// Lets `stream` wait for what `before` has been given.
CUresult GreenContexts::follow(Execution& on, const Known& known, uint64_t stream, uint64_t before) {
  auto real = [&](uint64_t handle) { return fromWire<CUstream>(on.handles.get(api::Kind::STREAM, handle)); };
  if (CUresult error = on.driver.cuEventRecord(known.order, real(before))) return error;
  on.gpu.progress.used(stream);
  return on.driver.cuStreamWaitEvent(real(stream), known.order, 0);
}

void GreenContexts::order(Execution& on, uint64_t stream) {
  if (stream == lastOrdered) return;  // none of the others has been given anything since
  lastOrdered = stream;
  auto found = greenOf.find(stream);
  if (found == greenOf.end()) return;
  const Known& known = get(found->second);
  CUresult result = CUDA_SUCCESS;
  if (stream != known.defaultStream) result = follow(on, known, stream, known.defaultStream);
  else
    for (uint64_t before : known.blocking)
      if (result == CUDA_SUCCESS) result = follow(on, known, stream, before);
  if (result != CUDA_SUCCESS) on.session.noteDeferred(on.device(), result);
}

CUresult GreenContexts::forgetStream(Execution& on, uint64_t stream) {
  streams.erase(stream);
  if (lastOrdered == stream) lastOrdered = 0;
  auto found = greenOf.find(stream);
  if (found == greenOf.end()) return CUDA_SUCCESS;
  Known& known = get(found->second);
  greenOf.erase(found);
  if (stream == known.defaultStream) return CUDA_SUCCESS;
  CUresult result = follow(on, known, known.defaultStream, stream);
  known.blocking.erase(stream);
  if (known.blocking.empty()) greenOf.erase(known.defaultStream);
  return result;
}

void GreenContexts::drop() {
  live.clear();
  streams.clear();
  greenOf.clear();
  splits.clear();
  lastOrdered = 0;
}

CUresult GreenContexts::destroyEvents(Execution& on) {
  for (auto& [handle, known] : live)
    if (known.order != nullptr)
      if (CUresult error = on.driver.cuEventDestroy_v2(known.order)) return error;
  drop();
  return CUDA_SUCCESS;
}

// The green contexts themselves end behind their streams, as the table of entries says.
const KindModule greenContextKind{.name = "greenContexts",
                                  .drop = [](Execution& on) { on.greenContexts.drop(); },
                                  .destroy = [](Execution& on) { return on.greenContexts.destroyEvents(on); }};

}  // namespace vgpu::stub
