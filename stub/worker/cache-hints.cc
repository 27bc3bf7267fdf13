#include "stub/worker/cache-hints.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "cuda-described.h"
#include "stub/worker/execution.h"
#include "stub/worker/unpacked.h"

namespace vgpu::stub {

namespace {

size_t mostOf(Execution& on, CUdevice_attribute attribute) {
  int value = 0;
  on.driver.cuDeviceGetAttribute(&value, attribute, on.driver.device(on.device()));
  return static_cast<size_t>(std::max(value, 0));
}

bool isAnotherModel(Execution& on) {
  if (on.device() >= on.session.seen.size()) return false;
  char name[256] = "";
  on.driver.cuDeviceGetName(name, sizeof name, on.driver.device(on.device()));
  return on.session.seen[on.device()].name != name;
}

void tell(Execution& on, const char* what, size_t wanted, size_t most) {
  spdlog::info("{} allows {} bytes of {}, and the program has asked for {} on the GPU that it began on: it goes on with what there is",
               on.session.nameOf(on.device()), most, what, wanted);
}

// What the log has reported, by GPU.
struct Told {
  bool ofWindow = false;  // a reduced window of a launch
};

CUresult setLimit(Execution& on, const api::FrameReader<api::Cuda::CtxSetLimitParams>& p, CUresult refused) {
  const size_t most = mostOf(on, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE);
  if (p.getLimit() != CU_LIMIT_PERSISTING_L2_CACHE_SIZE || (p.getValue() <= most && most != 0)) return refused;
  tell(on, "L2 cache for data that stays", p.getValue(), most);
  return most == 0 ? CUDA_SUCCESS : on.driver.cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, most);
}

CUresult setWindow(Execution& on, const api::FrameReader<api::Cuda::StreamSetAttributeParams>& p, CUresult refused) {
  if (p.getAttr() != CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) return refused;
  const size_t most = mostOf(on, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);
  Unpacked param(on, api::described::CUlaunchAttributeValue, p.getParam());
  if (param.check(1, false) != CUDA_SUCCESS) return refused;
  CUstreamAttrValue value = *param.get<CUstreamAttrValue>();
  const size_t wanted = value.accessPolicyWindow.num_bytes;
  if (wanted <= most && most != 0) return refused;
  tell(on, "a window of addresses in the L2 cache", wanted, most);
  if (most == 0) return CUDA_SUCCESS;
  value.accessPolicyWindow.num_bytes = most;
  return on.driver.cuStreamSetAttribute(fromWire<CUstream>(on.real(api::Kind::STREAM, p.getHStream(), true)),
                                        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value);
}

}  // namespace

CUresult setCacheHint(Execution& on, api::Method method, kj::ArrayPtr<const capnp::word> words, CUresult refused) {
  if (!isAnotherModel(on)) return refused;
  if (method == api::Method::ctxSetLimit) return setLimit(on, api::FrameReader<api::Cuda::CtxSetLimitParams>(words), refused);
  return setWindow(on, api::FrameReader<api::Cuda::StreamSetAttributeParams>(words), refused);
}

void limitCacheHints(Execution& on, std::vector<CUlaunchAttribute>& attributes) {
  auto isWindow = [](const CUlaunchAttribute& one) { return one.id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW; };
  auto window = std::ranges::find_if(attributes, isWindow);
  if (window == attributes.end()) return;
  const size_t most = mostOf(on, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);
  size_t& bytes = window->value.accessPolicyWindow.num_bytes;
  if (bytes <= most || !isAnotherModel(on)) return;
  if (!std::exchange(on.kept.of<Told>().ofWindow, true)) tell(on, "a window of addresses in the L2 cache", bytes, most);
  bytes = most;
  if (most == 0) std::erase_if(attributes, isWindow);
}

}  // namespace vgpu::stub
