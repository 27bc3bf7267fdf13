#include "intercept/patch/older-library.h"

#include <algorithm>
#include <array>

namespace vgpu::runtime {
namespace {

constexpr std::array<std::string_view, 2> olderLibraries{"libcublas.so.12", "libcublasLt.so.12"};

/// A text of a table of strings; empty if it does not end inside.
std::string_view textAt(image::Bytes strings, uint64_t offset) {
  if (offset >= strings.size()) return {};
  auto text = image::textOf(strings.subspan(offset));
  const size_t end = text.find('\0');
  return end == std::string_view::npos ? std::string_view{} : text.substr(0, end);
}

}  // namespace

bool isOlderLibrary(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  // libcublas.so.12, and libcublas.so.12.9.1.4 to which that name may be a link.
  return std::ranges::any_of(olderLibraries, [&](std::string_view older) {
    return name.starts_with(older) && (name.size() == older.size() || name[older.size()] == '.');
  });
}

std::string problemOfOlderLibraries(const image::Elf& program, const std::string& path) {
  auto dynamic = program.findSection(uint32_t{SHT_DYNAMIC});
  if (!dynamic || dynamic->sh_link >= program.sections().size()) return {};
  const auto strings = program.bytesOf(program.sections()[dynamic->sh_link]);
  for (const auto& entry : image::Table<Elf64_Dyn>(program.bytesOf(*dynamic))) {
    if (entry.d_tag != DT_NEEDED) continue;
    const std::string_view needed = textAt(strings, entry.d_un.d_val);
    if (isOlderLibrary(needed))
      return path + " is linked with " + std::string(needed) +
             ", cuBLAS of CUDA 12, which vgpu cannot run in the place of the program: build it with CUDA 13, whose cuBLAS it can";
  }
  return {};
}

}  // namespace vgpu::runtime
