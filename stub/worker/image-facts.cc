#include "stub/worker/image-facts.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "stub/worker/image-parts.h"
#include "vgpu/image/elf.h"

namespace vgpu::stub {

namespace {

bool isOfName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '.';
}

// text.find(word, from), but faster: find() stops at every occurrence of the word's first letter, which PTX is full of; memmem skips.
size_t seek(std::string_view text, std::string_view word, size_t from) {
  if (from >= text.size()) return text.npos;
  const void* found = memmem(text.data() + from, text.size() - from, word.data(), word.size());
  return found == nullptr ? text.npos : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

std::string_view asText(image::Bytes bytes) {
  return {static_cast<const char*>(static_cast<const void*>(bytes.data())), bytes.size()};
}

bool namesWord(std::string_view text, std::string_view word) {
  for (size_t at = seek(text, word, 0); at != text.npos; at = seek(text, word, at + 1)) {
    size_t end = at + word.size();
    if ((at == 0 || !isOfName(text[at - 1])) && (end == text.size() || !isOfName(text[end]))) return true;
  }
  return false;
}

// A declaration is `.global` or `.const`, then attributes and a type, each of which begins with a dot or is a number, then the name.
void addDeclared(std::string_view declaration, std::set<std::string>& names) {
  for (size_t at = 0; at < declaration.size();) {
    char c = declaration[at];
    if (c == ';' || c == '=' || c == '{' || c == '}') return;
    size_t end = at;
    while (end < declaration.size() && isOfName(declaration[end])) ++end;
    if (end == at) {
      // An attribute's argument: .attribute(.managed).
      at = c == '(' ? std::min(declaration.find(')', at), declaration.size() - 1) + 1 : at + 1;
    } else if (c == '.' || (c >= '0' && c <= '9')) {
      at = end;
    } else {
      names.emplace(declaration.substr(at, end - at));
      return;
    }
  }
}

void addOfPtx(std::string_view ptx, std::set<std::string>& names) {
  for (std::string_view space : {".global", ".const"})
    for (size_t at = seek(ptx, space, 0); at != ptx.npos; at = seek(ptx, space, at + 1)) {
      size_t end = at + space.size();
      // Instructions contain the state space too, as a part of a word: ld.global.u32.
      bool whole = (at == 0 || !isOfName(ptx[at - 1])) && end < ptx.size() && !isOfName(ptx[end]);
      if (whole) addDeclared(ptx.substr(end, 4096), names);
    }
}

constexpr unsigned char managedSymbol = 4;  // in st_other (ptxas of CUDA 12 and 13; readelf shows it)

void addOfElf(const image::Elf& elf, ImageFacts& facts) {
  for (const auto& table : elf.sections()) {
    if (table.sh_type != SHT_SYMTAB) continue;
    for (const auto& symbol : elf.symbolsOf(table))
      if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT) {
        facts.variables.emplace(elf.nameOf(table, symbol));
        facts.hasManaged |= (symbol.st_other & managedSymbol) != 0;
      }
  }
}

// Sets facts about the functions that kernels call, from PTX text or from the symbol names of an ELF file.
void noteCalls(std::string_view text, ImageFacts& facts) {
  facts.prints = facts.prints || namesWord(text, "vprintf");
  // __cudaCDP2Malloc is cudaMalloc() called by a kernel, in PTX; linked machine code calls malloc().
  facts.usesHeap = facts.usesHeap || namesWord(text, "malloc") || namesWord(text, "__cudaCDP2Malloc");
}

}  // namespace

ImageFacts findFacts(std::span<const std::byte> image, Majors majors) {
  ImageFacts facts{.majors = majors};
  auto visit = [&](std::string_view part) {
    image::Elf elf(std::as_bytes(std::span(part)));
    if (!elf.valid()) {
      noteCalls(part, facts);
      facts.hasManaged |= namesWord(part, ".managed");
      return addOfPtx(part, facts.variables);
    }
    for (const auto& section : elf.sections())
      if (section.sh_type == SHT_STRTAB) noteCalls(asText(elf.bytesOf(section)), facts);
    addOfElf(elf, facts);
  };
  auto reading = readImage(image, visit, majors);
  facts.variables.erase("");
  facts.problem = std::move(reading.problem);
  facts.unknown = std::move(reading.unknown);
  return facts;
}

}  // namespace vgpu::stub
