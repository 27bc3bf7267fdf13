// Links: the inputs are blobs, and the image returns to the program in parts. All driver calls for links are slow calls, so that one thread
// makes them: the driver (580.159) crashes if another thread destroys a link or creates the next one.
#include "stub/worker/kinds/link.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "cuda-handlers.h"
#include "stub/worker/kinds/kind.h"

namespace vgpu::stub {

namespace {

constexpr size_t partBytes = 256 * KiB;  // of an image; a reply can hold more
constexpr size_t mostLinks = 1024;       // for each GPU: far more than programs have at a time

// The linker's result is data in the reply: it may be an error that, as a frame's result, would count as a fault.
template <typename Results>
void report(const Link& link, Results& results) {
  results.setResult(link.result);
  results.setErrors(link.jit.errors());
  results.setInfo(link.jit.info());
  results.setMilliseconds(link.jit.milliseconds());
}

// Nothing if this worker does not know the link; the client is told so.
std::shared_ptr<Link> find(Execution& on, uint64_t handle) {
  auto* link = on.kept.find<Links>(handle);
  return link == nullptr ? nullptr : *link;
}

// The parts of a frame that the slow call needs.
struct Adding {
  explicit Adding(const api::FrameReader<api::Cuda::LinkAddParams>& p)
      : jit(p.getOptions(), p.getValues()), type(static_cast<CUjitInputType>(p.getType())), name(p.getName().cStr()) {}
  JitCall jit;
  const CUjitInputType type;
  const std::string name;
};

// After the slow calls that use it.
void destroy(Execution& on, const std::shared_ptr<Link>& link) {
  on.slow.add([&on, link] { return link->result = link->real == nullptr ? CUDA_SUCCESS : on.driver.cuLinkDestroy(link->real); },
              [](CUresult) {}, "cuLinkDestroy");
}

CUresult destroyAll(Execution& on) {
  Links ended = std::exchange(on.kept.of<Links>(), {});
  for (auto& [handle, link] : ended) destroy(on, link);
  if (!on.slow.finish(std::chrono::minutes(1))) return CUDA_ERROR_TIMEOUT;
  for (auto& [handle, link] : ended)
    if (link->result != CUDA_SUCCESS) return link->result;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult linkCreate(Execution& on, const api::FrameReader<api::Cuda::LinkCreateParams>& p, Reply& reply) {
  Links& links = on.kept.of<Links>();
  if (links.size() >= mostLinks) return CUDA_ERROR_OUT_OF_MEMORY;
  auto link = std::make_shared<Link>(p.getOptions(), p.getValues());
  if (!links.emplace(p.getLink(), link).second) return CUDA_ERROR_INVALID_VALUE;
  reply.putOff({[&on, link] {
                  return on.driver.cuLinkCreate_v2(link->jit.count(), link->jit.options(), link->jit.optionValues(), &link->real);
                },
                [&on, link, handle = p.getLink()](CUresult result, Reply&) {
                  if (result != CUDA_SUCCESS && find(on, handle) == link) on.kept.of<Links>().erase(handle);
                  return result;
                }});
  return CUDA_SUCCESS;
}

CUresult linkAdd(Execution& on, const api::FrameReader<api::Cuda::LinkAddParams>& p, Reply& reply) {
  auto link = find(on, p.getLink());
  const Blob* blob = on.blobs.find(p.getBlob());
  if (link == nullptr || blob == nullptr || !blob->isWhole()) {
    reply.init<api::Cuda::LinkAddResults>().setMissing(true);
    return CUDA_SUCCESS;
  }
  auto adding = std::make_shared<Adding>(p);
  reply.putOff({[&on, link, blob, adding] {
                  auto bytes = blob->bytes();
                  link->result = on.driver.cuLinkAddData_v2(link->real, adding->type, const_cast<std::byte*>(bytes.data()),
                                                            bytes.size(), adding->name.c_str(), adding->jit.ownCount(),
                                                            adding->jit.ownOptions(), adding->jit.ownValues());
                  return CUDA_SUCCESS;
                },
                [link](CUresult, Reply& to) {
                  auto results = to.init<api::Cuda::LinkAddResults>();
                  report(*link, results);
                  return CUDA_SUCCESS;
                }});
  return CUDA_SUCCESS;
}

CUresult linkComplete(Execution& on, const api::FrameReader<api::Cuda::LinkCompleteParams>& p, Reply& reply) {
  auto link = find(on, p.getLink());
  if (link == nullptr) {
    reply.init<api::Cuda::LinkCompleteResults>().setMissing(true);
    return CUDA_SUCCESS;
  }
  reply.putOff({[&on, link] {
                  void* image = nullptr;
                  size_t bytes = 0;
                  link->result = on.driver.cuLinkComplete(link->real, &image, &bytes);
                  if (link->result == CUDA_SUCCESS) link->image = {static_cast<const std::byte*>(image), bytes};
                  return CUDA_SUCCESS;
                },
                [link](CUresult, Reply& to) {
                  auto results = to.init<api::Cuda::LinkCompleteResults>();
                  report(*link, results);
                  results.setBytes(link->image.size());
                  return CUDA_SUCCESS;
                }});
  return CUDA_SUCCESS;
}

CUresult linkImage(Execution& on, const api::FrameReader<api::Cuda::LinkImageParams>& p, Reply& reply) {
  auto results = reply.init<api::Cuda::LinkImageResults>();
  auto link = find(on, p.getLink());
  if (link == nullptr || p.getOffset() > link->image.size()) return CUDA_SUCCESS;
  auto rest = link->image.subspan(p.getOffset());
  auto part = rest.first(std::min(rest.size(), partBytes));
  results.setBytes(kj::arrayPtr(fromWire<const kj::byte*>(toWire(part.data())), part.size()));
  return CUDA_SUCCESS;
}

// A link that this worker does not know was made in an earlier worker.
CUresult linkDestroy(Execution& on, const api::FrameReader<api::Cuda::LinkDestroyParams>& p, Reply&) {
  if (auto link = find(on, p.getLink())) destroy(on, link);
  on.kept.of<Links>().erase(p.getLink());
  return CUDA_SUCCESS;
}

const KindModule linkKind{.name = "links", .drop = [](Execution& on) { destroyAll(on); }, .destroy = destroyAll};

}  // namespace vgpu::stub
