#include "intercept/patch/stripped-runtime.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "intercept/patch/jump.h"
#include "vgpu/image/constants.h"
#include "vgpu/image/function-starts.h"

namespace vgpu::runtime {
namespace {

using image::Bytes, image::Part;

// The only function with a name amid those without. The strings of the API's names follow its own without gaps: the longest such run is
// taken, since there are other runs (of errors).
constexpr std::string_view anchor = "__cudaInitModule";
constexpr uint64_t mostBytesToNames = 64 << 10;  // 4 KiB in practice
constexpr size_t fewestNames = 300;              // 12.9 has 420, 13.0 has 406
// Limit for the code that is searched; the runtime of 13.5 has 0.66 MB.
constexpr uint64_t mostCodeBytes = 1 << 20;
// The API's functions lie together in about 200 KiB, and each is shorter than 1 KiB: reading a piece of each stride finds them, while most
// of a large library stays unread.
constexpr uint64_t strideBytes = 64 << 10, pieceBytes = 4 << 10;

// The functions that are found by order: offsets, in functions, from the anchor.
constexpr std::pair<int, std::string_view> byOrder[] = {
    {-8, "cudaGetExportTable"},
    {-7, "__cudaRegisterFatBinary"},
    {-6, "__cudaRegisterFatBinaryEnd"},
    {-5, "__cudaUnregisterFatBinary"},
    {-4, "__cudaRegisterVar"},
    {-3, "__cudaRegisterManagedVar"},
    {-2, "__cudaRegisterHostVar"},
    {-1, "__cudaRegisterFunction"},
    {1, "__cudaPushCallConfiguration"},
    {2, "__cudaPopCallConfiguration"},
    {3, "__cudaGetKernel"},
    {4, "__cudaLaunchKernel"},
    {5, "__cudaLaunchKernel_ptsz"},
    {6, "__cudaRegisterUnifiedTable"},
};
// Those of them that jump to an API function.
constexpr std::pair<int, std::string_view> confirming[] = {{4, "cudaLaunchKernel"}, {5, "cudaLaunchKernel_ptsz"}};

/// False for most objects. A runtime opens the driver, so it must be able to open libraries.
bool opensLibraries(const image::Elf& file) {
  auto table = file.findSection(SHT_DYNSYM);
  if (!table) return file.sections().empty();
  if (table->sh_link >= file.sections().size()) return false;
  return image::textOf(file.bytesOf(file.sections()[table->sh_link])).find("dlsym") != std::string_view::npos;
}

bool isName(std::string_view text) {
  auto isUpper = [](char each) { return each >= 'A' && each <= 'Z'; };
  auto isOfName = [&](char each) { return isUpper(each) || (each >= 'a' && each <= 'z') || (each >= '0' && each <= '9') || each == '_'; };
  return text.starts_with("cuda") && text.size() > 4 && isUpper(text[4]) && std::ranges::all_of(text, isOfName);
}

/// The zero-terminated string at that offset of the text.
std::string_view stringAt(std::string_view text, size_t at) { return text.substr(at, text.find('\0', at) - at); }

struct Name {
  std::string_view text;
  uint64_t address;  // of the string in the file
};

/// The names that follow each other from that offset on.
std::vector<Name> namesFrom(const Part& part, size_t at) {
  const std::string_view text = image::textOf(part.bytes);
  std::vector<Name> names;
  for (; at < text.size(); ++at) {
    if (text[at] == '\0') continue;
    const std::string_view name = stringAt(text, at);
    if (!isName(name)) break;
    names.push_back({name, part.address + at});
    at += name.size();
  }
  return names;
}

/// The offset of the anchor's next occurrence; npos if there is none.
size_t findAnchor(std::string_view text, size_t from) {
  size_t at = text.find(anchor, from);
  while (at != std::string_view::npos && stringAt(text, at) != anchor) at = text.find(anchor, at + 1);
  return at;
}

/// The anchor at that offset and the names of the API, sorted by address.
std::vector<Name> namesBehind(const Part& part, size_t at) {
  const std::string_view text = image::textOf(part.bytes);
  std::vector<Name> names{{anchor, part.address + at}}, longest;
  const size_t limit = std::min(text.size(), at + mostBytesToNames);
  for (at += anchor.size(); at < limit; ++at) {
    if (text[at - 1] != '\0' || text[at] != 'c') continue;
    auto run = namesFrom(part, at);
    if (run.empty()) continue;
    at = run.back().address - part.address;
    if (run.size() > longest.size()) longest = std::move(run);
  }
  names.insert(names.end(), longest.begin(), longest.end());
  return names;
}

/// An address by which code refers to a name: the string's own, or that of a data word that contains it.
struct Place {
  uint64_t address;
  size_t name;  // its index
};

/// Adds the data words that contain a name's address in the file, or get it by relocation.
void addWords(const image::Elf& file, const std::vector<Name>& names, std::vector<Place>& places) {
  auto add = [&](uint64_t at, uint64_t value) {
    auto name = std::ranges::lower_bound(names, value, {}, &Name::address);
    if (name != names.end() && name->address == value) places.push_back({at, static_cast<size_t>(name - names.begin())});
  };
  for (const auto& section : file.sections()) {
    if (section.sh_type == SHT_RELA)
      for (const auto& each : image::Table<Elf64_Rela>(file.bytesOf(section)))
        if (ELF64_R_TYPE(each.r_info) == R_X86_64_RELATIVE) add(each.r_offset, static_cast<uint64_t>(each.r_addend));
    const bool isRelocated = section.sh_type == SHT_PROGBITS && (section.sh_flags & SHF_WRITE) != 0;
    if (!isRelocated || (file.header().e_type != ET_EXEC && !file.findSection(".relr.dyn"))) continue;
    const Bytes bytes = file.bytesOf(section);
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t))
      add(section.sh_addr + at, image::read<uint64_t>(bytes, at));
  }
}

/// The places of all names, sorted by address.
std::vector<Place> placesOf(const image::Elf& file, const std::vector<Name>& names, bool inWords) {
  std::vector<Place> places;
  for (size_t i = 0; i < names.size(); ++i) places.push_back({names[i].address, i});
  if (inWords) addWords(file, names, places);
  std::ranges::sort(places, {}, &Place::address);
  return places;
}

/// Visits each instruction that has one of the places as a RIP-relative operand, until a visit returns true. Instructions are not decoded
/// further: four bytes that point to such a place are hardly anything else.
template <typename Visit>
bool visitOperands(const Part& code, const std::vector<Place>& places, Visit&& visit) {
  constexpr size_t operandBytes = 5;  // ModRM byte and displacement
  for (size_t i = 0; i + operandBytes <= code.bytes.size(); ++i) {
    if ((std::to_integer<unsigned>(code.bytes[i]) & 0xc7) != 0x05) continue;
    const auto distance = int64_t{image::read<int32_t>(code.bytes, i + 1)};
    const uint64_t to = code.address + i + operandBytes + static_cast<uint64_t>(distance);
    if (to < places.front().address || to > places.back().address) continue;
    auto place = std::ranges::lower_bound(places, to, {}, &Place::address);
    if (place->address == to && visit(code.address + i, place->name)) return true;
  }
  return false;
}

Part partOf(const Part& whole, uint64_t offset, uint64_t bytes) {
  return {whole.bytes.subspan(offset, std::min<uint64_t>(bytes, whole.bytes.size() - offset)), whole.address + offset};
}

RuntimeFunction functionAt(const image::FunctionStarts& starts, size_t index, std::string_view name) {
  const bool hasRoom = index + 1 == starts.size() || starts[index + 1] - starts[index] >= jumpBytes;
  return {name, starts[index], hasRoom};
}

/// The code around the functions that refer to one of the places.
std::optional<Part> findCode(const image::Elf& file, const std::vector<Place>& places) {
  for (const auto& segment : file.segments()) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const Part whole{file.bytesOf(segment), segment.p_vaddr};
    for (uint64_t offset = 0; offset < whole.bytes.size(); offset += strideBytes) {
      if (!visitOperands(partOf(whole, offset, pieceBytes), places, [](uint64_t, size_t) { return true; })) continue;
      const uint64_t from = offset < mostCodeBytes ? 0 : offset - mostCodeBytes;
      return partOf(whole, from, offset + mostCodeBytes - from);
    }
  }
  return std::nullopt;
}

/// The function that refers to each name. Empty unless each name has exactly one function, and each function one name.
std::vector<RuntimeFunction> functionsByName(const Part& code, const image::FunctionStarts& starts, const std::vector<Place>& places,
                                             const std::vector<Name>& names) {
  const size_t none = starts.size();
  std::vector<size_t> found(names.size(), none);  // indices of functions
  const bool isAmbiguous = visitOperands(code, places, [&](uint64_t instruction, size_t name) {
    const auto function = starts.find(instruction);
    if (!function) return false;
    const size_t before = std::exchange(found[name], *function);
    return before != none && before != *function;
  });
  if (isAmbiguous || std::ranges::find(found, none) != found.end()) return {};
  std::vector<RuntimeFunction> functions;
  for (size_t i = 0; i < names.size(); ++i) functions.push_back(functionAt(starts, found[i], names[i].text));
  std::ranges::sort(found);
  if (std::ranges::adjacent_find(found) != found.end()) return {};
  return functions;
}

/// True if the function's first instructions end with a jump to `to`.
bool jumpsTo(const image::Elf& file, uint64_t function, uint64_t to) {
  constexpr size_t before = 12, instructionBytes = 5;
  const Bytes bytes = file.bytesAt(function);
  for (size_t i = 0; i < before && i + instructionBytes <= bytes.size(); ++i) {
    if (bytes[i] != std::byte{0xe9}) continue;
    const auto distance = image::read<int32_t>(bytes, i + 1);
    if (function + i + instructionBytes + static_cast<uint64_t>(int64_t{distance}) == to) return true;
  }
  return false;
}

/// Adds the functions that are known by their order. False if the order is not confirmed.
bool addByOrder(const image::Elf& file, const image::FunctionStarts& starts, std::vector<RuntimeFunction>& functions) {
  const auto middle = starts.find(functions.front().address);
  constexpr int first = std::begin(byOrder)->first, last = std::rbegin(byOrder)->first;
  if (!middle || *middle < size_t{-first} || *middle + last >= starts.size()) return false;
  for (auto [distance, name] : confirming) {
    auto to = std::ranges::find(functions, name, &RuntimeFunction::name);
    if (to == functions.end() || !jumpsTo(file, starts[*middle + distance], to->address)) return false;
  }
  for (auto [distance, name] : byOrder) functions.push_back(functionAt(starts, *middle + distance, name));
  return true;
}

/// The functions with these names and those known by order; empty if this is not such a runtime.
std::vector<RuntimeFunction> functionsOf(const image::Elf& file, const std::vector<Name>& names) {
  if (names.size() < fewestNames) return {};
  const image::FunctionStarts starts(file);
  // In runtimes before 12.5 most names are referred to through data words, of which a file may have millions: tried second.
  for (bool inWords : {false, true}) {
    const auto places = placesOf(file, names, inWords);
    const auto code = findCode(file, places);
    if (!code) continue;
    auto functions = functionsByName(*code, starts, places, names);
    if (!functions.empty() && addByOrder(file, starts, functions)) return functions;
  }
  return {};
}

}  // namespace

std::vector<RuntimeFunction> findStrippedRuntime(const image::Elf& file) {
  if (!opensLibraries(file)) return {};
  for (const Part& constants : image::constantsOf(file)) {
    const std::string_view text = image::textOf(constants.bytes);
    // The program itself may contain the same text as a constant.
    for (size_t at = findAnchor(text, 0); at != std::string_view::npos; at = findAnchor(text, at + 1))
      if (auto functions = functionsOf(file, namesBehind(constants, at)); !functions.empty()) return functions;
  }
  return {};
}

}  // namespace vgpu::runtime
