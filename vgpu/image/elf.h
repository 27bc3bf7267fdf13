// A 64-bit little-endian ELF file as a view of bytes: its sections, segments and symbols.
//
// The bytes may be damaged or hostile. Every offset is checked against their size before it is followed: tables, sections and segments that
// are not completely inside read as empty. A caller that must reject such a file checks problem().
//
// A view owns nothing; the bytes must outlive it. It throws nothing, allocates nothing and needs no initialiser of the
// C++ library, because libcudart reads files before the program's constructors run.
#pragma once

#include <elf.h>

#include <optional>
#include <string_view>
#include <utility>

#include "vgpu/image/bytes.h"

namespace vgpu::image {

// The entries of a table, copied out because they may be unaligned.
template <typename T>
class Table {
 public:
  struct Iterator {
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    const std::byte* at = nullptr;

    T operator*() const { return read<T>({at, sizeof(T)}, 0); }
    Iterator& operator++() { return at += sizeof(T), *this; }
    Iterator operator++(int) { return {std::exchange(at, at + sizeof(T))}; }
    bool operator==(const Iterator&) const = default;
  };

  Table() = default;
  explicit Table(Bytes bytes) : bytes_(bytes.first(bytes.size() / sizeof(T) * sizeof(T))) {}

  size_t size() const { return bytes_.size() / sizeof(T); }
  bool empty() const { return bytes_.empty(); }
  T operator[](size_t index) const { return read<T>(bytes_, index * sizeof(T)); }
  Iterator begin() const { return {bytes_.data()}; }
  Iterator end() const { return {bytes_.data() + bytes_.size()}; }

 private:
  Bytes bytes_;
};

bool isElf(Bytes bytes);

class Elf {
 public:
  Elf() = default;
  explicit Elf(Bytes file);

  // False if it is not a 64-bit little-endian ELF file; then it has no sections, segments or symbols.
  bool valid() const { return header_.e_ident[EI_CLASS] != ELFCLASSNONE; }
  // Null if every table, section and segment is inside the bytes; else a text that says which one is not.
  const char* problem() const;
  // The end of the last of its tables, sections and segments. Only for a file without a problem.
  uint64_t end() const;

  const Elf64_Ehdr& header() const { return header_; }
  Table<Elf64_Phdr> segments() const { return segments_; }
  Table<Elf64_Shdr> sections() const { return sections_; }

  std::string_view nameOf(const Elf64_Shdr& section) const;
  // The first section with that name, or of that type (SHT_SYMTAB, SHT_DYNSYM).
  std::optional<Elf64_Shdr> findSection(std::string_view name) const;
  std::optional<Elf64_Shdr> findSection(uint32_t type) const;
  // The bytes of a section or segment; empty if it has none in the file.
  Bytes bytesOf(const Elf64_Shdr& section) const;
  Bytes bytesOf(const Elf64_Phdr& segment) const { return range(segment.p_offset, segment.p_filesz); }

  Table<Elf64_Sym> symbolsOf(const Elf64_Shdr& table) const;
  // A symbol's name without the "@version" that linkers append in .symtab.
  std::string_view nameOf(const Elf64_Shdr& table, const Elf64_Sym& symbol) const;

  // The loadable segment that covers the virtual address.
  std::optional<Elf64_Phdr> findSegment(uint64_t address) const;
  // The file's bytes from the virtual address to the end of its segment.
  Bytes bytesAt(uint64_t address) const;

 private:
  template <typename T>
  Table<T> table(uint64_t offset, uint64_t count, uint64_t entryBytes);
  Bytes range(uint64_t offset, uint64_t bytes) const;

  Bytes file_;
  Elf64_Ehdr header_{};
  Table<Elf64_Phdr> segments_;
  Table<Elf64_Shdr> sections_;
  Bytes sectionNames_;
  const char* problem_ = "it is not a 64-bit ELF file";  // of the header and the tables
};

}  // namespace vgpu::image
