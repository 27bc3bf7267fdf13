// vgpu's libcudart against the toolkit's: the same functions with the same symbol version, no more and no fewer.
#include <doctest/doctest.h>
#include <elf.h>

#include <set>
#include <string>

#include "vgpu/image/elf-file.h"

using vgpu::image::ElfFile;

namespace {

// "function@version" of every function that a library exports.
std::set<std::string> exportsOf(const char* path) {
  ElfFile file(path);
  REQUIRE(file.valid());
  auto table = file.findSection(SHT_DYNSYM), versions = file.findSection(SHT_GNU_versym);
  REQUIRE((table && versions && file.findSection(SHT_GNU_verdef)));
  auto indices = file.bytesOf(*versions);
  std::string version;  // both libraries define one version, named by an absolute symbol
  for (const Elf64_Sym& symbol : file.symbolsOf(*table))
    if (symbol.st_shndx == SHN_ABS) version = file.nameOf(*table, symbol);
  std::set<std::string> found;
  size_t row = 0;
  for (const Elf64_Sym& symbol : file.symbolsOf(*table)) {
    unsigned index = vgpu::image::read<uint16_t>(indices, 2 * row++) & 0x7fff;
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS) continue;
    found.insert(std::string(file.nameOf(*table, symbol)) + "@" + (index >= 2 ? version : "none"));
  }
  return found;
}

}  // namespace

TEST_CASE("libcudart exports exactly what the toolkit's does, including versions") {
  auto ours = exportsOf(VGPU_TEST_CUDART), theirs = exportsOf(VGPU_TEST_TOOLKIT_CUDART);
  CHECK(theirs.size() > 400);
  CHECK(theirs.contains("cudaMalloc@libcudart.so.13"));
  for (const std::string& name : theirs) CHECK_MESSAGE(ours.contains(name), name, " is missing");
  for (const std::string& name : ours) CHECK_MESSAGE(theirs.contains(name), name, " is not NVIDIA's");
}
