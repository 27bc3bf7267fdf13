#include "intercept/runtime/export-table.h"

// The generated list has the functions of the toolkit's own libcudart, sorted by name.
#define EXPORT(name) extern "C" void name();
#include "export-list.inc"
#undef EXPORT

#define EXPORT(name, function) extern "C" void function();
#include "export-list-12.inc"
#undef EXPORT

namespace vgpu::runtime {
namespace {

#define EXPORT(name) {#name, &name},
constexpr Export table[] = {
#include "export-list.inc"
};
#undef EXPORT

#define EXPORT(name, function) {#name, &function},
constexpr Export table12[] = {
#include "export-list-12.inc"
};
#undef EXPORT

}  // namespace

std::span<const Export> exports() { return table; }
std::span<const Export> exports12() { return table12; }

}  // namespace vgpu::runtime
