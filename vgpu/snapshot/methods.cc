#include "vgpu/snapshot/methods.h"

#include <fmt/format.h>

#include "vgpu/api/effects.h"
#include "vgpu/snapshot/manifest.h"

namespace vgpu::snapshot {

namespace {

void add(Methods& methods, api::Method method) {
  methods.try_emplace(static_cast<uint16_t>(method), api::infoOf(method).signature);
}

}  // namespace

void addMethods(Methods& methods, const std::vector<ObjectRecord>& records) {
  for (auto& record : records)
    for (auto& frame : record.recipe) add(methods, frame.method);
}

void addMethods(Methods& methods, const PendingCalls& pending) {
  for (api::Method method : methodsOf(pending)) add(methods, method);
}

void requireSameMethods(const Methods& methods, const Refusal& refuse) {
  for (auto& [number, signature] : methods) {
    const char* ours = api::isMethod(number) ? api::infoOf(static_cast<api::Method>(number)).signature : "no call";
    if (signature != ours)
      refuse(fmt::format("methods: the call {} is {} in the snapshot and {} in this build; resume it with the version that wrote it",
                         number, signature, ours));
  }
}

}  // namespace vgpu::snapshot
