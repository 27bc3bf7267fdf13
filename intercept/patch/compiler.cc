#include "intercept/patch/compiler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <string_view>

namespace vgpu::runtime {
namespace {

/// Set by `vgpuctl run` for programs on such a node.
constexpr const char* variable = "VGPU_RUNS_PTX";

struct Pair {
  const char *from, *to;
};
constexpr std::array<Pair, 2> pairs{{{"nvrtcGetCUBIN", "nvrtcGetPTX"}, {"nvrtcGetCUBINSize", "nvrtcGetPTXSize"}}};

/// Where the library has a function, in the file's address space; 0 if it has none of that name.
uint64_t addressOf(const image::Elf& file, const Elf64_Shdr& table, std::string_view name) {
  for (const auto& symbol : file.symbolsOf(table)) {
    if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || file.nameOf(table, symbol) != name) continue;
    return symbol.st_size >= jumpBytes ? symbol.st_value : 0;
  }
  return 0;
}

}  // namespace

std::optional<Plan> planForCompiler(const image::Elf& file, const std::string& path, const LoadedObject& object) {
  static std::array<Export, pairs.size()> targets;
  if (!std::string_view(path).substr(path.rfind('/') + 1).starts_with("libnvrtc.so") || std::getenv(variable) == nullptr)
    return std::nullopt;
  Plan plan{Plan::Verdict::patch, {}, {}};
  auto table = file.findSection(SHT_DYNSYM);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const uint64_t from = table ? addressOf(file, *table, pairs[i].from) : 0,
                   to = table ? addressOf(file, *table, pairs[i].to) : 0;
    if (from == 0 || to == 0)
      return Plan{Plan::Verdict::refuse, {}, path + ": there is no " + pairs[i].from + " or no room in it for a jump"};
    targets[i] = {pairs[i].from, std::bit_cast<void (*)()>(object.base + to)};
    plan.jumps.push_back({&targets[i], from});
  }
  std::ranges::sort(plan.jumps, {}, &Jump::address);
  return plan;
}

}  // namespace vgpu::runtime
