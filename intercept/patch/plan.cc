#include "intercept/patch/plan.h"

#include <algorithm>

#include "intercept/patch/stripped-runtime.h"
#include "vgpu/image/constants.h"
#include "vgpu/image/fatbinary.h"

namespace vgpu::runtime {
namespace {

using image::Bytes;

// Every copy of the runtime has this function, and every object that uses one calls it.
constexpr std::string_view landmark = "__cudaRegisterFatBinary";
// Every copy has this message about an old driver. An object with the functions but without the message forwards them to a runtime that it
// opens, as XLA does: that runtime is ours.
constexpr std::string_view text = "CUDA driver version is insufficient for CUDA runtime version";
// Functions of every runtime of CUDA 12 and of no other: the first is new in 12, and CUDA 13 has neither.
constexpr std::string_view since12 = "cudaGetDeviceProperties_v2", until12 = "cudaThreadExit";
// A section of this library: a second copy of it must not be patched to call this one while it patches this one to call it.
constexpr std::string_view ownSection = "vgpu_driver_entries";

const Export* findExport(std::span<const Export> rows, std::string_view name) {
  auto row = std::ranges::lower_bound(rows, name, {}, [](const Export& e) { return std::string_view(e.name); });
  return row != rows.end() && row->name == name ? &*row : nullptr;
}

/// True if the table's strings contain the landmark, as a definition or a reference. This check avoids walking the symbols of ordinary
/// objects.
bool mentionsRuntime(const image::Elf& file, const Elf64_Shdr& table) {
  if (table.sh_link >= file.sections().size()) return false;
  auto strings = file.bytesOf(file.sections()[table.sh_link]);
  return !strings.empty() && memmem(strings.data(), strings.size(), landmark.data(), landmark.size()) != nullptr;
}

/// For a program whose section headers were removed too: its data contain a fatbinary's wrapper (fatbinary_section.h).
bool holdsFatbinaryWrapper(const image::Elf& file) {
  constexpr uint64_t magicAndVersion[] = {uint64_t{1} << 32 | image::wrapperMagic,
                                          uint64_t{2} << 32 | image::wrapperMagic};
  for (const auto& segment : file.segments()) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0) continue;
    auto bytes = file.bytesAt(segment.p_vaddr);
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t))
      if (std::ranges::find(magicAndVersion, image::read<uint64_t>(bytes, at)) != std::end(magicAndVersion))
        return true;
  }
  return false;
}

Plan refuse(std::string reason) { return {Plan::Verdict::refuse, {}, std::move(reason)}; }

/// True if it calls functions of the shared runtime. The landmark does not tell: an object without device code does not call it.
bool callsSharedRuntime(const image::Elf& file, std::span<const Export> exports) {
  auto table = file.findSection(SHT_DYNSYM);
  return table && std::ranges::any_of(file.symbolsOf(*table), [&](const Elf64_Sym& symbol) {
           return symbol.st_shndx == SHN_UNDEF && findExport(exports, file.nameOf(*table, symbol)) != nullptr;
         });
}

Plan planWithoutRuntimeSymbols(const image::Elf& file, const std::string& path, std::span<const Export> exports) {
  bool registers =
      file.sections().empty() ? holdsFatbinaryWrapper(file) : file.findSection(".nvFatBinSegment").has_value();
  if (!registers || callsSharedRuntime(file, exports)) return {};
  return refuse(
      path +
      " has the CUDA runtime linked into it, but its symbol table is stripped and vgpu does not find the runtime's functions, so it cannot "
      "replace them with its own. Link it with `nvcc -cudart shared`, or keep the symbol table (no -s, no strip; `strip --strip-debug` is "
      "fine)");
}

/// True if the bytes are padding between functions: breakpoints, zeros and the parts of one-byte and multi-byte no-operations.
bool isPadding(Bytes bytes) {
  constexpr unsigned char padding[] = {0x00, 0x0f, 0x1f, 0x2e, 0x40, 0x44, 0x66, 0x80, 0x84, 0x90, 0xcc};
  return std::ranges::all_of(
      bytes, [&](std::byte byte) { return std::ranges::binary_search(padding, std::to_integer<unsigned char>(byte)); });
}

bool isExecutable(const image::Elf& file, uint64_t address) {
  auto segment = file.findSegment(address);
  return segment && (segment->p_flags & PF_X) != 0 && segment->p_filesz >= address - segment->p_vaddr + jumpBytes;
}

/// Why the jumps cannot be written, or empty. Two functions at one address would need two targets.
std::string conflictIn(const std::vector<Jump>& jumps) {
  for (size_t i = 1; i < jumps.size(); ++i)
    if (jumps[i].address - jumps[i - 1].address < jumpBytes && jumps[i].to->function != jumps[i - 1].to->function)
      return std::string(jumps[i - 1].to->name) + " and " + jumps[i].to->name + " share their code";
  return {};
}

bool defines(const image::Elf& file, const Elf64_Shdr& table, std::string_view name) {
  return std::ranges::any_of(file.symbolsOf(table),
                             [&](const Elf64_Sym& symbol) { return isFunction(symbol) && file.nameOf(table, symbol) == name; });
}

bool hasText(const image::Elf& file) {
  return std::ranges::any_of(image::constantsOf(file),
                             [](const image::Part& part) { return image::textOf(part.bytes).find(text) != std::string_view::npos; });
}

/// The functions of the table whose names a runtime has.
std::vector<RuntimeFunction> functionsIn(const image::Elf& file, const Elf64_Shdr& table) {
  const auto starts = startsIn(file, table);
  std::vector<RuntimeFunction> functions;
  for (const auto& symbol : file.symbolsOf(table)) {
    const std::string_view name = file.nameOf(table, symbol);
    if (isFunction(symbol) && (name.starts_with("cuda") || name.starts_with("__cuda")))
      functions.push_back({name, symbol.st_value, hasRoom(file, symbol, starts)});
  }
  return functions;
}

/// The plan for an object that has these functions, which include a runtime's.
Plan planForRuntime(const image::Elf& file, const std::vector<RuntimeFunction>& functions, const std::string& path,
                    std::span<const Export> exports13, std::span<const Export> exports12) {
  auto has = [&](std::string_view name) { return std::ranges::find(functions, name, &RuntimeFunction::name) != functions.end(); };
  const bool is12 = has(since12);
  if (!is12 && has(until12))
    return refuse(path + " has a CUDA runtime older than 12 linked into it (it contains " + std::string(until12) +
                  "). vgpu supports CUDA 12 and 13: rebuild it with one of these");
  auto exports = is12 ? exports12 : exports13;
  Plan plan{Plan::Verdict::patch, {}, {}};
  for (const RuntimeFunction& function : functions) {
    const Export* to = findExport(exports, function.name);
    if (to == nullptr) continue;
    if (!isExecutable(file, function.address) || !function.hasRoom)
      return refuse(path + " has the CUDA runtime linked into it, but there is no room at " + std::string(function.name) +
                    " for a jump to vgpu's. Link it with `nvcc -cudart shared`");
    plan.jumps.push_back({to, function.address});
  }
  std::ranges::sort(plan.jumps, {}, &Jump::address);
  if (std::string conflict = conflictIn(plan.jumps); !conflict.empty())
    return refuse(path + " has the CUDA runtime linked into it, but " + conflict +
                  " (identical code folding?). Link it with `nvcc -cudart shared`");
  return plan;
}

}  // namespace

bool isFunction(const Elf64_Sym& symbol) {
  return symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value != 0;
}

std::vector<uint64_t> startsIn(const image::Elf& file, const Elf64_Shdr& table) {
  std::vector<uint64_t> starts;
  for (const auto& symbol : file.symbolsOf(table))
    if (isFunction(symbol)) starts.push_back(symbol.st_value);
  std::ranges::sort(starts);
  return starts;
}

bool hasRoom(const image::Elf& file, const Elf64_Sym& function, const std::vector<uint64_t>& starts) {
  if (function.st_size >= jumpBytes) return true;
  auto next = std::ranges::upper_bound(starts, function.st_value);
  if (next != starts.end() && *next - function.st_value < jumpBytes) return false;
  auto bytes = file.bytesAt(function.st_value);
  return bytes.size() >= jumpBytes && isPadding(bytes.subspan(function.st_size, jumpBytes - function.st_size));
}

Plan planFor(const image::Elf& file, const std::string& path, std::span<const Export> exports,
             std::span<const Export> exports12) {
  if (file.findSection(ownSection)) return {};
  for (uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
    auto table = file.findSection(type);
    if (table && mentionsRuntime(file, *table) && defines(file, *table, landmark))
      return !hasText(file) ? Plan{} : planForRuntime(file, functionsIn(file, *table), path, exports, exports12);
  }
  if (auto functions = findStrippedRuntime(file); !functions.empty())
    return planForRuntime(file, functions, path, exports, exports12);
  return planWithoutRuntimeSymbols(file, path, exports);
}

Plan planForLibrary(const image::Elf& file, const std::string& path, std::span<const Export> exports) {
  Plan plan{Plan::Verdict::patch, {}, {}};
  auto table = file.findSection(SHT_DYNSYM);
  if (!table) return refuse(path + " has no symbols, so vgpu's functions cannot be redirected to its functions");
  const auto starts = startsIn(file, *table);
  for (const auto& symbol : file.symbolsOf(*table)) {
    const Export* to = isFunction(symbol) ? findExport(exports, file.nameOf(*table, symbol)) : nullptr;
    if (to == nullptr || !isExecutable(file, symbol.st_value)) continue;
    if (!hasRoom(file, symbol, starts)) return refuse(path + " cannot be patched: there is no room at " + to->name);
    plan.jumps.push_back({to, symbol.st_value});
  }
  std::ranges::sort(plan.jumps, {}, &Jump::address);
  // Of several names of one address the first counts: they name one function of the library.
  auto same = std::ranges::unique(plan.jumps, {}, &Jump::address);
  plan.jumps.erase(same.begin(), same.end());
  if (std::string conflict = conflictIn(plan.jumps); !conflict.empty()) return refuse(path + " cannot be patched: " + conflict);
  return plan;
}

}  // namespace vgpu::runtime
