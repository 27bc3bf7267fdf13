#include "stub/worker/image-facts.h"

#include <elf.h>
#include <lz4.h>
#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace vgpu::stub {

namespace {

constexpr uint32_t containerMagic = 0xba55ed50;
constexpr uint64_t lz4Flag = 0x2000, zstdFlag = 0x8000;
constexpr uint64_t mostPlainBytes = 256ull << 20;  // what we would unpack to find out

using Bytes = std::span<const std::byte>;

template <typename T>
T read(Bytes bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

const char* charactersOf(Bytes bytes) { return static_cast<const char*>(static_cast<const void*>(bytes.data())); }
std::string_view textOf(Bytes bytes) { return {charactersOf(bytes), bytes.size()}; }

// As stored, or decompressed; nothing where it cannot be.
std::optional<std::string> plainMember(Bytes payload, uint64_t compressed, uint64_t plain, uint64_t flags) {
  if ((flags & (lz4Flag | zstdFlag)) == 0) return std::string(textOf(payload));
  if (plain > mostPlainBytes || compressed > payload.size()) return std::nullopt;
  std::string out(plain, '\0');
  auto stored = payload.first(compressed);
  if (flags & zstdFlag) {
    size_t done = ZSTD_decompress(out.data(), out.size(), stored.data(), stored.size());
    if (ZSTD_isError(done) || done != plain) return std::nullopt;
    return out;
  }
  int done =
      LZ4_decompress_safe(charactersOf(stored), out.data(), static_cast<int>(stored.size()), static_cast<int>(plain));
  if (done < 0 || static_cast<uint64_t>(done) != plain) return std::nullopt;
  return out;
}

// Visits the code of an image: itself, or each member of a fatbinary. False where a part cannot be read.
bool forEachPart(Bytes image, const std::function<void(std::string_view)>& visit) {
  constexpr uint64_t containerHeader = 16, memberHeader = 64;
  if (image.size() < containerHeader || read<uint32_t>(image, 0) != containerMagic) {
    visit(textOf(image));
    return true;
  }
  bool whole = true;
  for (uint64_t at = containerHeader; at + memberHeader <= image.size();) {
    auto header = read<uint32_t>(image, at + 4);
    auto bytes = read<uint64_t>(image, at + 8);
    if (header < memberHeader || header > image.size() - at || bytes > image.size() - at - header) return false;
    auto part = plainMember(image.subspan(at + header, bytes), read<uint32_t>(image, at + 16),
                            read<uint64_t>(image, at + 56), read<uint64_t>(image, at + 40));
    if (part) visit(*part);
    whole = whole && part;
    at += header + bytes;
  }
  return whole;
}

bool isOfName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '.';
}

// As text.find(word, from). That one looks for the word's first letter, which PTX is full of; memmem skips.
size_t seek(std::string_view text, std::string_view word, size_t from) {
  if (from >= text.size()) return text.npos;
  const void* found = memmem(text.data() + from, text.size() - from, word.data(), word.size());
  return found == nullptr ? text.npos : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

bool namesWord(std::string_view text, std::string_view word) {
  for (size_t at = seek(text, word, 0); at != text.npos; at = seek(text, word, at + 1)) {
    size_t end = at + word.size();
    if ((at == 0 || !isOfName(text[at - 1])) && (end == text.size() || !isOfName(text[end]))) return true;
  }
  return false;
}

// A declaration is `.global` or `.const`, attributes and a type, all beginning with a dot or being numbers, then the
// name.
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
      // Instructions name the space, too, within a word: ld.global.u32.
      bool whole = (at == 0 || !isOfName(ptx[at - 1])) && end < ptx.size() && !isOfName(ptx[end]);
      if (whole) addDeclared(ptx.substr(end, 4096), names);
    }
}

void addOfElf(Bytes elf, std::set<std::string>& names) {
  if (elf.size() < sizeof(Elf64_Ehdr)) return;
  auto header = read<Elf64_Ehdr>(elf, 0);
  auto section = [&](uint64_t index) -> std::optional<Elf64_Shdr> {
    uint64_t at = header.e_shoff + index * sizeof(Elf64_Shdr);
    if (index >= header.e_shnum || header.e_shoff > elf.size() || at + sizeof(Elf64_Shdr) > elf.size())
      return std::nullopt;
    auto found = read<Elf64_Shdr>(elf, at);
    if (found.sh_type != SHT_NOBITS && (found.sh_offset > elf.size() || found.sh_size > elf.size() - found.sh_offset))
      return std::nullopt;
    return found;
  };
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    auto table = section(i);
    if (!table || table->sh_type != SHT_SYMTAB) continue;
    auto strings = section(table->sh_link);
    if (!strings || strings->sh_type != SHT_STRTAB) continue;
    auto text = textOf(elf.subspan(strings->sh_offset, strings->sh_size));
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
      auto symbol = read<Elf64_Sym>(elf, table->sh_offset + at);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_name >= text.size()) continue;
      auto name = text.substr(symbol.st_name);
      names.emplace(name.substr(0, name.find('\0')));
    }
  }
}

}  // namespace

ImageFacts findFacts(std::span<const std::byte> image) {
  ImageFacts facts;
  bool whole = forEachPart(image, [&](std::string_view part) {
    facts.prints = facts.prints || namesWord(part, "vprintf");
    facts.usesHeap = facts.usesHeap || namesWord(part, "malloc");
    if (part.starts_with(ELFMAG)) {
      addOfElf(std::as_bytes(std::span(part)), facts.variables);
    } else {
      addOfPtx(part, facts.variables);
    }
  });
  facts.variables.erase("");
  if (!whole) facts.prints = facts.usesHeap = true;
  return facts;
}

}  // namespace vgpu::stub
