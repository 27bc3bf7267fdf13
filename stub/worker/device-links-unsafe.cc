// By hand: what a GPU of this host is connected to. CUDA does not say it, so the host's NVML does: frameworks choose by it how they
// send data between GPUs. Nothing is known of a device that NVML has not, an emulated one for example.
#include <vector>

#include "cuda-handlers.h"
#include "vgpu/base/nvml.h"

namespace vgpu::stub {

namespace {

constexpr unsigned mostLinks = 18, capabilities = 6;  // NVML_NVLINK_MAX_LINKS, NVML_NVLINK_CAP_COUNT

struct Pci {  // nvmlPciInfo_t
  char legacy[16];
  unsigned domain, bus, device, ids, subsystem;
  char id[32];
};

template <typename... Arguments>
bool ask(const char* name, Arguments... arguments) {
  auto function = reinterpret_cast<int (*)(Arguments...)>(nvmlFunction(name));
  return function != nullptr && function(arguments...) == nvmlSuccess;
}

unsigned number(const char* name, void* device) {
  unsigned value = 0;
  return ask(name, device, &value) ? value : 0;
}

// Whether there is that link; of newer GPUs the first function need not know.
bool findLink(void* device, unsigned link, int& isActive) {
  if (ask("nvmlDeviceGetNvLinkState", device, link, &isActive)) return true;
  NvmlField state{.field = nvmlLinkState, .scope = link};
  if (!ask("nvmlDeviceGetFieldValues", device, 1, &state) || state.result != nvmlSuccess) return false;
  isActive = state.value != 0;
  return true;
}

void addLink(void* device, unsigned link, int isActive, std::vector<uint32_t>& to) {
  unsigned can = 0, version = 0;
  int remoteType = 255;  // NVML_NVLINK_DEVICE_TYPE_UNKNOWN
  Pci remote{};
  for (int which = 0; which < static_cast<int>(capabilities); ++which)
    if (unsigned value = 0; ask("nvmlDeviceGetNvLinkCapability", device, link, which, &value) && value != 0) can |= 1u << which;
  ask("nvmlDeviceGetNvLinkVersion", device, link, &version);
  ask("nvmlDeviceGetNvLinkRemoteDeviceType", device, link, &remoteType);
  ask("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, &remote);
  to.insert(to.end(), {static_cast<uint32_t>(isActive), can, version, static_cast<uint32_t>(remoteType), remote.domain, remote.bus,
                       remote.device, remote.ids, remote.subsystem});
}

}  // namespace

CUresult deviceLinks(Execution& on, const api::FrameReader<api::Cuda::DeviceLinksParams>& p, Reply& reply) {
  on.session.of(p.getDevice());  // is there
  CUuuid uuid{};
  void* device = nullptr;
  std::vector<uint32_t> links;
  if (CUresult error = on.driver.cuDeviceGetUuid_v2(&uuid, on.driver.device(p.getDevice()))) return error;
  auto results = reply.init<api::Cuda::DeviceLinksResults>();
  if (!ask("nvmlDeviceGetHandleByUUID", uuidText(uuid).c_str(), &device)) return CUDA_SUCCESS;
  results.setGeneration(number("nvmlDeviceGetCurrPcieLinkGeneration", device));
  results.setWidth(number("nvmlDeviceGetCurrPcieLinkWidth", device));
  results.setBestGeneration(number("nvmlDeviceGetMaxPcieLinkGeneration", device));
  results.setBestWidth(number("nvmlDeviceGetMaxPcieLinkWidth", device));
  int isActive = 0;
  for (unsigned link = 0; link < mostLinks && findLink(device, link, isActive); ++link)
    addLink(device, link, isActive, links);
  results.setLinks(kj::arrayPtr(links.data(), links.size()));
  return CUDA_SUCCESS;
}

}  // namespace vgpu::stub
