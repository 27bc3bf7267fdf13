#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "intercept/runtime/elf-file.h"

namespace vgpu::runtime {
namespace {

std::span<const unsigned char> mapFile(const char* path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  struct stat status;
  void* bytes = MAP_FAILED;
  bool ordinary = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  if (ordinary) bytes = mmap(nullptr, status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (bytes == MAP_FAILED) return {};
  return {static_cast<const unsigned char*>(bytes), static_cast<size_t>(status.st_size)};
}

std::string_view textAt(std::span<const unsigned char> table, size_t offset) {
  if (offset >= table.size()) return {};
  auto* text = reinterpret_cast<const char*>(table.data()) + offset;
  return {text, strnlen(text, table.size() - offset)};
}

}  // namespace

ElfFile::ElfFile(const char* path) : file_(mapFile(path)) {
  auto headers = table<Elf64_Ehdr>(0, 1);
  if (headers.empty()) return;
  const Elf64_Ehdr& header = headers[0];
  bool ours = memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
              header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_machine == EM_X86_64;
  if (!ours) return;
  header_ = &header;
  if (header.e_phentsize == sizeof(Elf64_Phdr)) segments_ = table<Elf64_Phdr>(header.e_phoff, header.e_phnum);
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff == 0) return;
  auto first = table<Elf64_Shdr>(header.e_shoff, 1);
  if (first.empty()) return;
  // Files with very many sections keep count and name index in the first section (ELF-64 Object File Format,
  // "e_shnum").
  uint64_t count = header.e_shnum != 0 ? header.e_shnum : first[0].sh_size;
  uint64_t names = header.e_shstrndx != SHN_XINDEX ? header.e_shstrndx : first[0].sh_link;
  sections_ = table<Elf64_Shdr>(header.e_shoff, count);
  if (names < sections_.size()) sectionNames_ = bytesOf(sections_[names]);
}

ElfFile::~ElfFile() {
  if (!file_.empty()) munmap(const_cast<unsigned char*>(file_.data()), file_.size());
}

std::span<const unsigned char> ElfFile::range(uint64_t offset, uint64_t size) const {
  if (offset > file_.size() || size > file_.size() - offset) return {};
  return file_.subspan(offset, size);
}

template <class T>
std::span<const T> ElfFile::table(uint64_t offset, uint64_t count) const {
  if (offset % alignof(T) != 0 || count > file_.size() / sizeof(T)) return {};
  auto bytes = range(offset, count * sizeof(T));
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

std::string_view ElfFile::nameOf(const Elf64_Shdr& section) const { return textAt(sectionNames_, section.sh_name); }

const Elf64_Shdr* ElfFile::findSection(std::string_view name) const {
  for (const Elf64_Shdr& section : sections_)
    if (nameOf(section) == name) return &section;
  return nullptr;
}

const Elf64_Shdr* ElfFile::findSection(uint32_t type) const {
  for (const Elf64_Shdr& section : sections_)
    if (section.sh_type == type) return &section;
  return nullptr;
}

std::span<const unsigned char> ElfFile::bytesOf(const Elf64_Shdr& section) const {
  return section.sh_type == SHT_NOBITS ? std::span<const unsigned char>() : range(section.sh_offset, section.sh_size);
}

std::span<const Elf64_Sym> ElfFile::symbolsOf(const Elf64_Shdr& symbols) const {
  return table<Elf64_Sym>(symbols.sh_offset, symbols.sh_size / sizeof(Elf64_Sym));
}

std::string_view ElfFile::nameOf(const Elf64_Shdr& symbols, const Elf64_Sym& symbol) const {
  if (symbols.sh_link >= sections_.size()) return {};
  std::string_view name = textAt(bytesOf(sections_[symbols.sh_link]), symbol.st_name);
  return name.substr(0, name.find('@'));
}

const Elf64_Phdr* ElfFile::findSegment(uint64_t address) const {
  for (const Elf64_Phdr& segment : segments_)
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_memsz)
      return &segment;
  return nullptr;
}

std::span<const unsigned char> ElfFile::bytesAt(uint64_t address) const {
  const Elf64_Phdr* segment = findSegment(address);
  if (segment == nullptr || address - segment->p_vaddr >= segment->p_filesz) return {};
  auto bytes = range(segment->p_offset, segment->p_filesz);
  return bytes.empty() ? bytes : bytes.subspan(address - segment->p_vaddr);
}

}  // namespace vgpu::runtime
