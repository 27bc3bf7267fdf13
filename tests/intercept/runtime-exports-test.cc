// Our libcudart against the toolkit's: the same functions under the same version, no more and no fewer.
#include <doctest/doctest.h>
#include <elf.h>

#include <set>
#include <string>

#include "intercept/runtime/elf-file.h"

using vgpu::runtime::ElfFile;

namespace {

/// "function@version" of every function that a library exports.
std::set<std::string> exportsOf(const char* path) {
  ElfFile file(path);
  REQUIRE(file.valid());
  const Elf64_Shdr* table = file.findSection(SHT_DYNSYM);
  const Elf64_Shdr* versions = file.findSection(SHT_GNU_versym);
  const Elf64_Shdr* definitions = file.findSection(SHT_GNU_verdef);
  REQUIRE((table != nullptr && versions != nullptr && definitions != nullptr));
  auto indices = file.bytesOf(*versions);
  std::string version;  // both libraries define one, and mark it with an absolute symbol
  for (const Elf64_Sym& symbol : file.symbolsOf(*table))
    if (symbol.st_shndx == SHN_ABS) version = file.nameOf(*table, symbol);
  std::set<std::string> found;
  size_t row = 0;
  for (const Elf64_Sym& symbol : file.symbolsOf(*table)) {
    unsigned index = indices[2 * row] | (indices[2 * row + 1] & 0x7f) << 8;
    ++row;
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) continue;
    found.insert(std::string(file.nameOf(*table, symbol)) + "@" + (index >= 2 ? version : "none"));
  }
  return found;
}

}  // namespace

TEST_CASE("libcudart exports exactly what the toolkit's exports, version included") {
  auto ours = exportsOf(VGPU_TEST_CUDART), theirs = exportsOf(VGPU_TEST_TOOLKIT_CUDART);
  CHECK(theirs.size() > 400);
  CHECK(theirs.contains("cudaMalloc@libcudart.so.13"));
  for (const std::string& name : theirs) CHECK_MESSAGE(ours.contains(name), name, " is missing");
  for (const std::string& name : ours) CHECK_MESSAGE(theirs.contains(name), name, " is not NVIDIA's");
}
