// By hand: what a GPU of this host is connected to. CUDA does not report it, so the host's NVML is asked: frameworks decide by it how to
// send data between GPUs. Nothing is known of a device that NVML does not list, such as an emulated one.
#include <vector>

#include "cuda-handlers.h"
#include "vgpu/base/nvml.h"

namespace vgpu::stub {

namespace {

template <typename... Arguments>
bool ask(const char* name, Arguments... arguments) {
  auto function = reinterpret_cast<int (*)(Arguments...)>(nvmlFunction(name));
  return function != nullptr && function(arguments...) == nvmlSuccess;
}

unsigned number(const char* name, void* device) {
  unsigned value = 0;
  return ask(name, device, &value) ? value : 0;
}

// Whether the GPU has that link; newer GPUs may support only the second query.
bool findLink(void* device, unsigned link, int& isActive) {
  if (ask("nvmlDeviceGetNvLinkState", device, link, &isActive)) return true;
  NvmlField state{.field = nvmlLinkState, .scope = link};
  if (!ask("nvmlDeviceGetFieldValues", device, 1, &state) || state.result != nvmlSuccess) return false;
  isActive = state.value != 0;
  return true;
}

NvmlLink linkOf(void* device, unsigned link, int isActive) {
  NvmlPci remote{};
  NvmlLink found{.isActive = isActive != 0, .remoteType = 255};  // NVML_NVLINK_DEVICE_TYPE_UNKNOWN
  for (unsigned which = 0; which < nvmlCapabilities; ++which)
    if (unsigned can = 0; ask("nvmlDeviceGetNvLinkCapability", device, link, static_cast<int>(which), &can) && can != 0)
      found.capabilities |= 1u << which;
  ask("nvmlDeviceGetNvLinkVersion", device, link, &found.version);
  ask("nvmlDeviceGetNvLinkRemoteDeviceType", device, link, &found.remoteType);
  if (ask("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, &remote))
    found.domain = remote.domain, found.bus = remote.bus, found.device = remote.device, found.ids = remote.ids,
    found.subsystem = remote.subsystem;
  return found;
}

}  // namespace

CUresult deviceLinks(Execution& on, const api::FrameReader<api::Cuda::DeviceLinksParams>& p, Reply& reply) {
  on.session.of(p.getDevice());  // throws if there is no such device
  CUuuid uuid{};
  void* device = nullptr;
  std::vector<NvmlLink> links;
  if (CUresult error = on.driver.cuDeviceGetUuid_v2(&uuid, on.driver.device(p.getDevice()))) return error;
  auto results = reply.init<api::Cuda::DeviceLinksResults>();
  if (!ask("nvmlDeviceGetHandleByUUID", uuidText(uuid).c_str(), &device)) return CUDA_SUCCESS;
  results.setGeneration(number("nvmlDeviceGetCurrPcieLinkGeneration", device));
  results.setWidth(number("nvmlDeviceGetCurrPcieLinkWidth", device));
  results.setBestGeneration(number("nvmlDeviceGetMaxPcieLinkGeneration", device));
  results.setBestWidth(number("nvmlDeviceGetMaxPcieLinkWidth", device));
  int isActive = 0;
  for (unsigned link = 0; link < nvmlMostLinks && findLink(device, link, isActive); ++link)
    links.push_back(linkOf(device, link, isActive));
  results.setLinks(kj::arrayPtr(links.data(), links.size()).asBytes());
  return CUDA_SUCCESS;
}

}  // namespace vgpu::stub
