#include "intercept/runtime/export-table.h"

// The list is generated, in the order of the names, from the functions of the toolkit's own libcudart.
#define EXPORT(name) extern "C" void name();
#include "export-list.inc"
#undef EXPORT

namespace vgpu::runtime {
namespace {

#define EXPORT(name) {#name, &name},
constexpr Export table[] = {
#include "export-list.inc"
};
#undef EXPORT

}  // namespace

std::span<const Export> exports() { return table; }

}  // namespace vgpu::runtime
