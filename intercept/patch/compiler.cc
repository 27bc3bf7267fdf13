#include "intercept/patch/compiler.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "intercept/runtime/compilers.h"
#include "vgpu/image/bytes.h"

namespace vgpu::runtime {
namespace {

struct Compiler {
  const char* file;  ///< its file name starts with this
  std::span<const CompilerRow> (*rows)();
  size_t copies;  ///< how many have been loaded
};
constinit Compiler compilers[] = {{"libnvrtc.so", nvrtcRows, 0}, {"libnvJitLink.so", nvJitLinkRows, 0}};

/// `vgpuctl run` sets this for programs on a node with emulated devices.
bool runsPtx() { return std::getenv("VGPU_RUNS_PTX") != nullptr; }

/// nvJitLinkCreate for __nvJitLinkCreate_13_0, the symbol that the header calls.
std::string_view plainName(std::string_view name) {
  if (!name.starts_with("__")) return name;
  name.remove_prefix(2);
  return name.substr(0, name.find('_'));
}

/// The target of a function that consists of one direct jump, in the file's address space.
std::optional<uint64_t> targetOf(const image::Elf& file, const Elf64_Sym& function) {
  constexpr uint64_t bytes = 5;
  auto code = file.bytesAt(function.st_value);
  if (function.st_size != bytes || code.size() < bytes || code[0] != std::byte{0xe9}) return std::nullopt;
  const auto distance = image::read<int32_t>(code, 1);
  return function.st_value + bytes + static_cast<uint64_t>(static_cast<int64_t>(distance));
}

Plan refuse(const std::string& path, std::string_view name) {
  return {Plan::Verdict::refuse, {}, path + ": there is no " + std::string(name) + " that can be overwritten with a jump"};
}

Plan planFor(const Compiler& compiler, const image::Elf& file, const std::string& path, const LoadedObject& object) {
  auto table = file.findSection(SHT_DYNSYM);
  if (!table || compiler.copies == mostCopies) return {};
  const auto rows = compiler.rows();
  auto& targets = *std::make_unique<std::vector<Export>>(rows.size()).release();
  const auto starts = startsIn(file, *table);
  std::vector<bool> found(rows.size());
  Plan plan{Plan::Verdict::patch, {}, {}};
  for (const auto& symbol : file.symbolsOf(*table)) {
    const std::string_view name = file.nameOf(*table, symbol);
    const auto row = std::ranges::find(rows, plainName(name), &CompilerRow::name);
    if (row == rows.end() || !isFunction(symbol)) continue;
    const auto ours = row->ours[compiler.copies];
    auto address = ours != nullptr && row->note != nullptr ? targetOf(file, symbol) : symbol.st_value;
    if (!address || (ours != nullptr && !hasRoom(file, symbol, starts))) return refuse(path, name);
    if (row->note != nullptr) row->note(compiler.copies, object.base + *address);
    const auto at = static_cast<size_t>(row - rows.begin());
    found[at] = true;
    if (ours == nullptr) continue;
    targets[at] = {row->name, ours};
    plan.jumps.push_back({&targets[at], symbol.st_value});
  }
  for (size_t at = 0; at < rows.size(); ++at)
    if (!found[at]) return refuse(path, rows[at].name);
  std::ranges::sort(plan.jumps, {}, &Jump::address);
  return plan;
}

}  // namespace

std::optional<Plan> planForCompiler(const image::Elf& file, const std::string& path, const LoadedObject& object) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  for (auto& compiler : compilers) {
    if (!name.starts_with(compiler.file) || !runsPtx()) continue;
    Plan plan = planFor(compiler, file, path, object);
    if (plan.verdict == Plan::Verdict::patch) ++compiler.copies;
    return plan;
  }
  return std::nullopt;
}

}  // namespace vgpu::runtime
