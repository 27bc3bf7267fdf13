// An ELF file as a read-only view: its sections, segments and symbols.
//
// The file belongs to somebody else and may be damaged or hostile: every offset is checked against the size of the file
// before it is followed, and what does not fit is absent, never read. Used before the program's constructors run, so it
// needs no initialiser of the C++ library and throws nothing. Not thread-safe; a view lives on one stack.
#pragma once
#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace vgpu::runtime {

class ElfFile {
 public:
  explicit ElfFile(const char* path);
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  /// False where the file cannot be opened or is no 64-bit little-endian x86-64 ELF file.
  bool valid() const { return header_ != nullptr; }
  /// The header as the file has it. Only of a valid file.
  const Elf64_Ehdr& header() const { return *header_; }
  std::span<const Elf64_Phdr> segments() const { return segments_; }
  std::span<const Elf64_Shdr> sections() const { return sections_; }

  std::string_view nameOf(const Elf64_Shdr& section) const;
  /// The first section of that name, or null.
  const Elf64_Shdr* findSection(std::string_view name) const;
  /// The first section of that type (SHT_SYMTAB, SHT_DYNSYM), or null.
  const Elf64_Shdr* findSection(uint32_t type) const;
  /// The section's bytes; empty for SHT_NOBITS and for what does not lie inside the file.
  std::span<const unsigned char> bytesOf(const Elf64_Shdr& section) const;

  std::span<const Elf64_Sym> symbolsOf(const Elf64_Shdr& table) const;
  /// A symbol's name without the "@version" that linkers append in .symtab.
  std::string_view nameOf(const Elf64_Shdr& table, const Elf64_Sym& symbol) const;
  /// The bytes from the virtual address on, as the file holds them, up to the end of their segment.
  std::span<const unsigned char> bytesAt(uint64_t address) const;
  /// The loadable segment that covers the virtual address, or null.
  const Elf64_Phdr* findSegment(uint64_t address) const;

 private:
  std::span<const unsigned char> range(uint64_t offset, uint64_t size) const;
  template <class T>
  std::span<const T> table(uint64_t offset, uint64_t count) const;

  std::span<const unsigned char> file_;
  const Elf64_Ehdr* header_ = nullptr;
  std::span<const Elf64_Phdr> segments_;
  std::span<const Elf64_Shdr> sections_;
  std::span<const unsigned char> sectionNames_;
};

}  // namespace vgpu::runtime
