#include "stub/worker/kinds/graph-restore.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "stub/worker/execution.h"
#include "stub/worker/kinds/graphs.h"
#include "vgpu/base/hex.h"

namespace vgpu::stub {

namespace {

constexpr std::array methods{api::Method::graphSetKernel, api::Method::graphSetCopy,   api::Method::graphSetFill,
                             api::Method::graphSetEvent,  api::Method::graphSetMemOps, api::Method::graphEnable};

const api::Method* findMethod(const std::string& signature) {
  auto found = std::ranges::find_if(methods, [&](api::Method method) { return signature == api::infoOf(method).signature; });
  return found == methods.end() ? nullptr : found;
}

// Whether all that the frame names is still there. A graph that names what is gone cannot be launched any more.
bool isWhole(SessionState& session, api::Method method, kj::ArrayPtr<const capnp::word> words) {
  bool whole = true;
  api::visitEffects(method, words, [&](const api::EffectOn& one) {
    if (!one.nullable || one.handle != 0) whole &= session.of(handleDevice(one.handle)).handles.of(one.kind).contains(one.handle);
  });
  return whole;
}

}  // namespace

bool isGraphRow(const Row& row, uint64_t devices) {
  auto& words = textIn(row, 3);
  return handleDevice(numberIn(row, 0)) < devices && numberIn(row, 1) <= UINT32_MAX && findMethod(textIn(row, 2)) != nullptr &&
         isHex(words) && words.size() % (2 * sizeof(capnp::word)) == 0;
}

Rows saveGraphs(SessionState& session) {
  Rows rows;
  for (unsigned device = 0; device < session.deviceCount(); ++device) {
    if (session.isEnded(device)) continue;
    std::map<uint64_t, const KnownGraph*> ordered;
    for (auto& [handle, graph] : session.of(device).kept.of<KnownGraphs>()) ordered.emplace(handle, &graph);
    for (auto& [handle, graph] : ordered)
      for (uint64_t node = 0; node < graph->nodes.size(); ++node)
        for (auto& [method, words] : graph->nodes[node].set) {
          if (!isWhole(session, method, kj::arrayPtr(words.data(), words.size()))) continue;
          rows.push_back({handle, node, std::string(api::infoOf(method).signature), hexOf(std::as_bytes(std::span(words)))});
        }
  }
  return rows;
}

void restoreGraphs(SessionState& session, const Rows& rows) {
  Reply reply;
  for (auto& row : rows) {
    KnownGraph* graph = session.of(handleDevice(numberIn(row, 0))).kept.find<KnownGraphs>(numberIn(row, 0));
    if (graph == nullptr || graph->executable == nullptr || numberIn(row, 1) >= graph->nodes.size()) continue;
    Execution& on = session.select(graph->nodes[numberIn(row, 1)].device);
    auto bytes = bytesOf(textIn(row, 3));
    std::vector<capnp::word> words(bytes.size() / sizeof(capnp::word));
    std::memcpy(words.data(), bytes.data(), bytes.size());
    reply.reset();
    CUresult result = on.execute(*findMethod(textIn(row, 2)), kj::arrayPtr(words.data(), words.size()), 0, 0, reply);
    if (result == CUDA_SUCCESS) continue;
    // It names memory that is gone. Its next launch is refused, instead of doing what the node did before.
    on.driver.cuGraphExecDestroy(graph->executable);
    graph->executable = nullptr;
  }
}

}  // namespace vgpu::stub
