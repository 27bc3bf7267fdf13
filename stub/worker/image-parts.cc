#include "stub/worker/image-parts.h"

#include <algorithm>
#include <cctype>

#include "vgpu/image/elf.h"
#include "vgpu/image/fatbinary.h"

namespace vgpu::stub {

namespace {

using Visit = std::function<void(std::string_view)>;

// The driver recognizes formats by their first bytes, and takes everything else for text.
bool isText(std::string_view part) {
  auto start = part.substr(0, 4);
  start = start.substr(0, start.find('\0'));
  return !start.empty() && std::all_of(start.begin(), start.end(),
                                       [](unsigned char each) { return std::isprint(each) || std::isspace(each); });
}

// Visits a part of a fatbinary: text, ELF files, and intermediate code of kinds that the driver tells apart by the member's header. Returns
// the problem, if any.
std::string readPart(std::string_view part, const Visit& visit) {
  auto bytes = std::as_bytes(std::span(part));
  if (image::isElf(bytes))
    if (auto* problem = image::Elf(bytes).problem()) return problem;
  visit(part);
  return "";
}

ImageReading readMembers(image::Fatbinary fatbinary, const Visit& visit, Majors majors) {
  ImageReading reading;
  std::string room;
  while (auto member = fatbinary.next()) {
    if (member->kind == image::machineCode && (majorOf(member->architecture) & majors) == 0) continue;
    if (auto content = image::contentOf(*member, room)) {
      reading.problem = readPart(*content, visit);
      if (!reading.problem.empty()) return reading;
    } else {
      reading.unknown =
          "the member at byte " + std::to_string(member->at) + " does not decompress to what its header says";
    }
  }
  reading.problem = fatbinary.problem();
  return reading;
}

}  // namespace

ImageReading readImage(std::span<const std::byte> image, const Visit& visit, Majors majors) {
  if (image::isFatbinary(image)) return readMembers(image::Fatbinary(image), visit, majors);
  auto whole = image::textOf(image);
  if (!image::isElf(image) && !isText(whole))
    return {.problem = "it is neither PTX text nor an ELF file nor a fatbinary"};
  return {.problem = readPart(whole, visit)};
}

}  // namespace vgpu::stub
