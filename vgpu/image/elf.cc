#include "vgpu/image/elf.h"

#include <algorithm>

namespace vgpu::image {

namespace {

// Types of sections that, besides SHT_NOBITS, have no bytes in the file, in relocatable device code of nvcc 13: .nv.global, .nv.local and
// .nv.shared.
constexpr uint32_t deviceGlobal = SHT_LOPROC + 7, deviceLocal = SHT_LOPROC + 9, deviceShared = SHT_LOPROC + 10;

bool hasBytes(const Elf64_Shdr& section) {
  auto type = section.sh_type;
  return type != SHT_NULL && type != SHT_NOBITS && type != deviceGlobal && type != deviceLocal && type != deviceShared;
}

std::string_view textAt(Bytes table, uint64_t offset) {
  if (offset >= table.size()) return {};
  auto text = textOf(table.subspan(offset));
  return text.substr(0, text.find('\0'));
}

}  // namespace

bool isElf(Bytes bytes) { return textOf(bytes).starts_with(std::string_view(ELFMAG, SELFMAG)); }

Elf::Elf(Bytes file) : file_(file) {
  if (!isElf(file) || file.size() < sizeof(Elf64_Ehdr)) return;
  auto header = read<Elf64_Ehdr>(file, 0);
  // Linux also runs a file that does not state its byte order.
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] == ELFDATA2MSB) return;
  header_ = header;
  problem_ = nullptr;
  segments_ = table<Elf64_Phdr>(header.e_phoff, header.e_phnum, header.e_phentsize);
  if (header.e_shoff == 0 && header.e_shnum == 0) return;
  // Files with very many sections keep their number and the index of the name table in the first section (ELF-64 Object File Format,
  // "e_shnum").
  auto first = table<Elf64_Shdr>(header.e_shoff, 1, header.e_shentsize);
  if (first.empty()) return;
  sections_ =
      table<Elf64_Shdr>(header.e_shoff, header.e_shnum != 0 ? header.e_shnum : first[0].sh_size, header.e_shentsize);
  uint64_t names = header.e_shstrndx != SHN_XINDEX ? header.e_shstrndx : first[0].sh_link;
  if (names < sections_.size()) sectionNames_ = bytesOf(sections_[names]);
}

template <typename T>
Table<T> Elf::table(uint64_t offset, uint64_t count, uint64_t entryBytes) {
  if (count == 0) return {};
  if (entryBytes == sizeof(T) && count <= file_.size() / sizeof(T) && isInside(offset, count * sizeof(T), file_.size()))
    return Table<T>(range(offset, count * sizeof(T)));
  problem_ = "a table of the ELF file extends past its end";
  return {};
}

Bytes Elf::range(uint64_t offset, uint64_t bytes) const {
  return isInside(offset, bytes, file_.size()) ? file_.subspan(offset, bytes) : Bytes();
}

const char* Elf::problem() const {
  if (problem_ != nullptr) return problem_;
  auto leadsOut = [&](uint64_t offset, uint64_t bytes) { return !isInside(offset, bytes, file_.size()); };
  for (auto section : sections_)
    if (hasBytes(section) && leadsOut(section.sh_offset, section.sh_size)) return "a section extends past the end of its ELF file";
  for (auto segment : segments_)
    if (segment.p_filesz != 0 && leadsOut(segment.p_offset, segment.p_filesz))
      return "a segment extends past the end of its ELF file";
  return nullptr;
}

uint64_t Elf::end() const {
  uint64_t end = sizeof(Elf64_Ehdr);
  auto reach = [&](uint64_t offset, uint64_t bytes) {
    if (bytes != 0) end = std::max(end, offset + bytes);
  };
  reach(header_.e_shoff, sections_.size() * sizeof(Elf64_Shdr));
  reach(header_.e_phoff, segments_.size() * sizeof(Elf64_Phdr));
  for (auto section : sections_) reach(section.sh_offset, bytesOf(section).size());
  for (auto segment : segments_) reach(segment.p_offset, bytesOf(segment).size());
  return end;
}

std::string_view Elf::nameOf(const Elf64_Shdr& section) const { return textAt(sectionNames_, section.sh_name); }

std::optional<Elf64_Shdr> Elf::findSection(std::string_view name) const {
  for (auto section : sections_)
    if (nameOf(section) == name) return section;
  return std::nullopt;
}

std::optional<Elf64_Shdr> Elf::findSection(uint32_t type) const {
  for (auto section : sections_)
    if (section.sh_type == type) return section;
  return std::nullopt;
}

Bytes Elf::bytesOf(const Elf64_Shdr& section) const {
  return hasBytes(section) ? range(section.sh_offset, section.sh_size) : Bytes();
}

Table<Elf64_Sym> Elf::symbolsOf(const Elf64_Shdr& table) const { return Table<Elf64_Sym>(bytesOf(table)); }

std::string_view Elf::nameOf(const Elf64_Shdr& table, const Elf64_Sym& symbol) const {
  if (table.sh_link >= sections_.size()) return {};
  auto name = textAt(bytesOf(sections_[table.sh_link]), symbol.st_name);
  return name.substr(0, name.find('@'));
}

std::optional<Elf64_Phdr> Elf::findSegment(uint64_t address) const {
  for (auto segment : segments_)
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_memsz)
      return segment;
  return std::nullopt;
}

Bytes Elf::bytesAt(uint64_t address) const {
  auto segment = findSegment(address);
  if (!segment || address - segment->p_vaddr >= segment->p_filesz) return {};
  auto bytes = bytesOf(*segment);
  return bytes.empty() ? bytes : bytes.subspan(address - segment->p_vaddr);
}

}  // namespace vgpu::image
