#include "emulator/container-samples.h"
#include "fuzz.h"

namespace vgpu::fuzz {
namespace {

constexpr uint64_t elfHeaderBytes = 64, sectionHeaderBytes = 64;

std::string section(uint32_t name, uint64_t offset, uint64_t bytes) {
  std::string header;
  test::append(header, name);
  test::append<uint32_t>(header, 1);
  header.append(16, '\0');
  test::append(header, offset);
  test::append(header, bytes);
  header.resize(sectionHeaderBytes, '\0');
  return header;
}

// A 64-bit ELF file with two sections: section names, and a fatbinary in .nv_fatbin.
std::string elf(const std::string& content) {
  const std::string names("\0.nv_fatbin\0", 12);
  const uint64_t table = elfHeaderBytes + names.size() + content.size();
  std::string file("\177ELF\2\1\1", 7);
  file.resize(40, '\0');
  test::append(file, table);
  file.resize(58, '\0');
  test::append<uint16_t>(file, sectionHeaderBytes);
  test::append<uint16_t>(file, 2);
  test::append<uint16_t>(file, 0);
  return file + names + content + section(0, elfHeaderBytes, names.size()) +
         section(1, elfHeaderBytes + names.size(), content.size());
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string text = ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n  ret;\n}\n";
  using test::Packing;
  const std::string all =
      test::fatbinary(test::member(2, 90, "\177ELF", Packing::plain) + test::member(1, 75, text, Packing::plain) +
                      test::member(1, 80, text, Packing::lz4) + test::member(1, 90, text, Packing::zstd, 0x100000));
  return {text,
          test::fatbinary(test::member(1, 75, text, Packing::plain)),
          test::fatbinary(test::member(1, 75, text, Packing::lz4)),
          test::fatbinary(test::member(1, 75, text, Packing::zstd)),
          all,
          elf(all)};
}

}  // namespace vgpu::fuzz
