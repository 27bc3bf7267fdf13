#include "stub/emulator/ptx/lanes/registry.h"

#include <stdexcept>

#include "stub/emulator/ptx/lanes/matrix-product.h"

// The registration functions and the matrix products exist once for each instruction set for which the lane operations are compiled.
#define VGPU_DECLARE_OPS(isa)                                                                                  \
  namespace vgpu::emulator::isa {                                                                              \
  void addIntegerOps(Registry&);                                                                               \
  void addBitOps(Registry&);                                                                                   \
  void addFloatOps(Registry&);                                                                                 \
  void addRoundingOps(Registry&);                                                                              \
  void addApproximateOps(Registry&);                                                                           \
  void addCompareOps(Registry&);                                                                               \
  void addConvertOps(Registry&);                                                                               \
  void addFloatConvertOps(Registry&);                                                                          \
  void addFloat8Ops(Registry&);                                                                                \
  void addHalfOps(Registry&);                                                                                  \
  void addPackedOps(Registry&);                                                                                \
  MatrixProducts productsOf();                                                                                 \
  inline void addAll(Registry& r) {                                                                            \
    for (auto* add : {addIntegerOps, addBitOps, addFloatOps, addRoundingOps, addApproximateOps, addCompareOps, \
                      addConvertOps, addFloatConvertOps, addFloat8Ops, addHalfOps, addPackedOps})              \
      add(r);                                                                                                  \
  }                                                                                                            \
  }

VGPU_DECLARE_OPS(baseline)
#ifdef VGPU_ISA_AVX2
VGPU_DECLARE_OPS(avx2)
#endif
#ifdef VGPU_ISA_AVX512
VGPU_DECLARE_OPS(avx512)
#endif

namespace vgpu::emulator {

void Registry::add(const char* family, const char* type, const Row& row) {
  std::string name = family;
  if (*type) (name += '.') += type;
  if (!rows.emplace(name, row).second) throw std::logic_error("two lane operations are named " + name);
}

const Row* Registry::find(std::string_view name) const {
  const auto found = rows.find(name);
  return found == rows.end() ? nullptr : &found->second;
}

namespace {

struct InstructionSet {
  void (*addAll)(Registry&);
  MatrixProducts (*products)();
};

InstructionSet chosen() {
#ifdef VGPU_ISA_AVX512
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
    return {avx512::addAll, avx512::productsOf};
#endif
#ifdef VGPU_ISA_AVX2
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
    return {avx2::addAll, avx2::productsOf};
#endif
  return {baseline::addAll, baseline::productsOf};
}

}  // namespace

const Registry& registry() {
  static const Registry filled = [] {
    Registry r;
    chosen().addAll(r);
    return r;
  }();
  return filled;
}

const MatrixProducts& matrixProducts() {
  static const MatrixProducts products = chosen().products();
  return products;
}

}  // namespace vgpu::emulator
