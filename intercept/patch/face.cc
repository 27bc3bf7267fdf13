#include "intercept/patch/face.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <string_view>
#include <vector>

#include "vgpu/image/elf-file.h"

namespace vgpu::runtime {
namespace {

/// The section that marks a face (intercept/libraries/faces/shared.cc).
constexpr std::string_view faceSection = "vgpu_face";

struct Face {
  uint64_t base;
  std::string path;
  bool isRead = false;  // whether its symbols were read; the first vendor library with a face does so
  std::vector<std::string> names;
  std::vector<Export> exports;
};
constinit std::vector<Face>* faces = nullptr;  // never freed, as `known` in start.cc

std::string_view nameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Whether the file name is that of the face's library: libcublas.so.13, or libcublas.so.13.1.0.3, to which that may be a link. Also a
/// library of CUDA 12: its functions are a subset of 13's, with the same parameters (docs/interposition.md).
bool isOf(std::string_view face, std::string_view name) {
  const size_t stem = face.rfind('.') + 1;
  if (!name.starts_with(face.substr(0, stem))) return false;
  const std::string_view version = name.substr(stem, name.find('.', stem) - stem);
  return version == face.substr(stem) || version == "12";
}

void readExports(Face& face) {
  image::ElfFile file(face.path.c_str());
  auto table = file.findSection(SHT_DYNSYM);
  if (!table) return;
  std::vector<std::pair<std::string, uint64_t>> found;
  for (const auto& symbol : file.symbolsOf(*table))
    if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
      found.emplace_back(file.nameOf(*table, symbol), face.base + symbol.st_value);
  std::ranges::sort(found);
  face.names.reserve(found.size());  // the exports point to these strings
  for (auto& [name, address] : found) {
    face.names.push_back(name);
    face.exports.push_back({face.names.back().c_str(), std::bit_cast<void (*)()>(address)});
  }
}

}  // namespace

bool noteFace(const image::Elf& file, const LoadedObject& object) {
  if (!file.findSection(faceSection)) return false;
  if (faces == nullptr) faces = std::make_unique<std::vector<Face>>().release();
  faces->push_back({object.base, object.name, false, {}, {}});
  return true;
}

std::optional<std::span<const Export>> findFace(const std::string& path) {
  if (faces == nullptr) return std::nullopt;
  for (Face& face : *faces) {
    if (!isOf(nameOf(face.path), nameOf(path))) continue;
    if (!face.isRead) readExports(face);
    face.isRead = true;
    return face.exports;
  }
  return std::nullopt;
}

}  // namespace vgpu::runtime
