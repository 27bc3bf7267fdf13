#include "container.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>

namespace vgpu::emulator::api {
namespace {

constexpr uint32_t wrapperMagic = 0x466243b1, containerMagic = 0xba55ed50, elfMagic = 0x464c457f;
constexpr uint64_t containerHeaderBytes = 16, memberHeaderBytes = 64;
// A PTX text larger than this is taken for a damaged or hostile size field; real ones are some tens of MiB.
constexpr uint64_t mostPlainBytes = uint64_t{1} << 30;
constexpr uint64_t mostImageBytes = uint64_t{1} << 32;

enum Flag : uint64_t { lz4 = 0x2000, zstd = 0x8000, architectureSpecific = 0x100000, familySpecific = 0x200000 };

[[noreturn]] void refuseImage(const std::string& what) { refuse(CUDA_ERROR_INVALID_IMAGE, what); }

// The value at `offset`, which the caller has checked to be inside.
template <class Value>
Value read(std::span<const std::byte> bytes, uint64_t offset) {
  Value value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string at(uint64_t offset) { return " (member header at byte " + std::to_string(offset) + " of the fatbinary)"; }

std::string_view nameOf(std::span<const std::byte> header) {
  uint32_t offset = read<uint32_t>(header, 32), length = read<uint32_t>(header, 36);
  if (offset < memberHeaderBytes || offset > header.size() || length > header.size() - offset) return {};
  auto text = header.subspan(offset, length);
  return {static_cast<const char*>(static_cast<const void*>(text.data())), text.size()};
}

FatbinaryMember readMember(std::span<const std::byte> rest, uint64_t offset, uint64_t& length) {
  uint32_t headerBytes = read<uint32_t>(rest, 4);
  uint64_t payloadBytes = read<uint64_t>(rest, 8);
  if (headerBytes < memberHeaderBytes || headerBytes > rest.size()) {
    refuseImage("header size " + std::to_string(headerBytes) + " is impossible" + at(offset));
  }
  if (payloadBytes > rest.size() - headerBytes) {
    refuseImage("payload of " + std::to_string(payloadBytes) + " bytes ends outside the container" + at(offset));
  }
  length = headerBytes + payloadBytes;
  FatbinaryMember member{.kind = read<uint16_t>(rest, 0),
                         .architecture = read<uint32_t>(rest, 28),
                         .flags = read<uint64_t>(rest, 40),
                         .name = nameOf(rest.first(headerBytes)),
                         .payload = rest.subspan(headerBytes, payloadBytes),
                         .plainBytes = payloadBytes};
  if (!(member.flags & (Flag::lz4 | Flag::zstd))) return member;
  uint32_t compressedBytes = read<uint32_t>(rest, 16);
  member.plainBytes = read<uint64_t>(rest, 56);
  if (compressedBytes > payloadBytes) {
    refuseImage("compressed size " + std::to_string(compressedBytes) + " is more than the payload" + at(offset));
  }
  if (member.plainBytes > mostPlainBytes) {
    refuseImage("decompressed size " + std::to_string(member.plainBytes) + " is more than 1 GiB" + at(offset));
  }
  member.payload = member.payload.first(compressedBytes);
  return member;
}

std::string label(const FatbinaryMember& member) {
  std::string kind = member.kind == 1   ? "PTX compute_"
                     : member.kind == 2 ? "SASS sm_"
                                        : "kind " + std::to_string(member.kind) + " sm_";
  const char* suffix = member.flags & Flag::architectureSpecific ? "a" : member.flags & Flag::familySpecific ? "f" : "";
  return kind + std::to_string(member.architecture) + suffix;
}

// PTX for an architecture runs on it and every later one; with the suffix `a` on that one alone; with `f` on those of
// the same major version from it on (PTX ISA, ".target").
bool runsOn(const FatbinaryMember& member, int architecture) {
  auto device = static_cast<uint32_t>(architecture);
  if (member.kind != 1 || member.architecture > device) return false;
  if (member.flags & Flag::architectureSpecific) return member.architecture == device;
  if (member.flags & Flag::familySpecific) return member.architecture / 10 == device / 10;
  return true;
}

std::string ptxOfFatbinary(std::span<const std::byte> container, int architecture) {
  std::vector<FatbinaryMember> members = readFatbinary(container);
  const FatbinaryMember* best = nullptr;
  for (const FatbinaryMember& member : members) {
    if (!runsOn(member, architecture)) continue;
    // Of two for one architecture the specific one is meant for it.
    auto rank = [](const FatbinaryMember& m) {
      return std::pair(m.architecture, m.flags & (Flag::architectureSpecific | Flag::familySpecific));
    };
    if (!best || rank(member) > rank(*best)) best = &member;
  }
  if (best) return plainPayload(*best);
  std::string there;
  for (const FatbinaryMember& member : members) there += (there.empty() ? "" : ", ") + label(member);
  refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, "the fatbinary has no PTX for sm_" + std::to_string(architecture) +
                                           "; it has: " + (there.empty() ? "nothing" : there) +
                                           ". Compile with -gencode arch=compute_75,code=compute_75 or the like.");
}

struct Section {
  uint64_t nameOffset, offset, bytes;
};

std::vector<Section> elfSections(std::span<const std::byte> elf) {
  constexpr uint64_t elfHeaderBytes = 64, sectionHeaderBytes = 64;
  if (elf.size() < elfHeaderBytes || read<uint8_t>(elf, 4) != 2) refuseImage("the ELF file is not a 64-bit one");
  uint64_t table = read<uint64_t>(elf, 40);
  uint16_t each = read<uint16_t>(elf, 58), count = read<uint16_t>(elf, 60);
  if (each != sectionHeaderBytes || table > elf.size() || uint64_t{count} * each > elf.size() - table) {
    refuseImage("the ELF file's section table ends outside of it");
  }
  std::vector<Section> sections;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t header = table + i * each;
    constexpr uint32_t noBits = 8;
    uint64_t offset = read<uint64_t>(elf, header + 24), bytes = read<uint64_t>(elf, header + 32);
    if (read<uint32_t>(elf, header + 4) == noBits) bytes = 0;
    if (offset > elf.size() || bytes > elf.size() - offset) refuseImage("an ELF section ends outside the file");
    sections.push_back({read<uint32_t>(elf, header), offset, bytes});
  }
  return sections;
}

// A host object or executable keeps fatbinaries in .nv_fatbin; a device one has machine code only.
std::string ptxOfElf(std::span<const std::byte> elf, int architecture) {
  std::vector<Section> sections = elfSections(elf);
  uint16_t namesIndex = read<uint16_t>(elf, 62);
  std::span<const std::byte> names;
  if (namesIndex < sections.size()) names = elf.subspan(sections[namesIndex].offset, sections[namesIndex].bytes);
  constexpr std::string_view wanted{".nv_fatbin\0", 11};
  for (const Section& section : sections) {
    if (section.nameOffset > names.size() || wanted.size() > names.size() - section.nameOffset) continue;
    if (std::memcmp(names.data() + section.nameOffset, wanted.data(), wanted.size()) != 0) continue;
    return ptxOfFatbinary(elf.subspan(section.offset, section.bytes), architecture);
  }
  refuse(CUDA_ERROR_NO_BINARY_FOR_GPU,
         "the module is machine code for one GPU architecture (ELF); the emulated device runs PTX. Compile with "
         "-gencode arch=compute_75,code=compute_75 or the like to have it included.");
}

std::optional<uint32_t> magicOf(std::span<const std::byte> image) {
  if (image.size() < 4) return std::nullopt;
  return read<uint32_t>(image, 0);
}

// The text up to its NUL. PTX is ASCII; the driver takes anything else for a damaged binary.
std::string textOf(std::span<const std::byte> image) {
  std::string_view text(static_cast<const char*>(static_cast<const void*>(image.data())), image.size());
  text = text.substr(0, text.find('\0'));
  auto readable = [](unsigned char each) { return std::isprint(each) || std::isspace(each); };
  std::string_view start = text.substr(0, 64);
  if (text.empty() || !std::all_of(start.begin(), start.end(), readable)) {
    refuseImage("the module is neither PTX text nor a fatbinary nor an ELF file");
  }
  return std::string(text);
}

// Whether the payload can become as much text as its header claims: known before room is made for it.
bool sizeIsPossible(const FatbinaryMember& member) {
  constexpr uint64_t mostLz4Ratio = 255;  // LZ4 block format: a byte of match length stands for up to 255
  if (!(member.flags & Flag::zstd)) return member.plainBytes / mostLz4Ratio <= member.payload.size();
  const unsigned long long size = ZSTD_getFrameContentSize(member.payload.data(), member.payload.size());
  return size == member.plainBytes || size == ZSTD_CONTENTSIZE_UNKNOWN;
}

}  // namespace

std::vector<FatbinaryMember> readFatbinary(std::span<const std::byte> container) {
  if (container.size() < containerHeaderBytes)
    refuseImage("a fatbinary of " + std::to_string(container.size()) + " bytes has no header");
  if (magicOf(container) != containerMagic) refuseImage("the fatbinary's magic number is wrong");
  uint64_t headerBytes = read<uint16_t>(container, 6), bytes = read<uint64_t>(container, 8);
  if (headerBytes < containerHeaderBytes || headerBytes > container.size() || bytes > container.size() - headerBytes) {
    refuseImage("the fatbinary says that it has " + std::to_string(bytes) + " bytes, there are " +
                std::to_string(container.size()));
  }
  std::vector<FatbinaryMember> members;
  for (uint64_t offset = headerBytes, end = headerBytes + bytes; offset < end;) {
    uint64_t length = 0;
    std::span<const std::byte> rest = container.first(end).subspan(offset);
    if (rest.size() < memberHeaderBytes) refuseImage("the fatbinary ends inside a member header" + at(offset));
    members.push_back(readMember(rest, offset, length));
    offset += length;
  }
  return members;
}

std::string plainPayload(const FatbinaryMember& member) {
  const void* stored = member.payload.data();
  if (!(member.flags & (Flag::lz4 | Flag::zstd))) {
    std::string text(static_cast<const char*>(stored), member.payload.size());
    return text.substr(0, text.find('\0'));  // padded with zeros to a multiple of 8
  }
  const auto check = [&](bool whole) {
    if (!whole)
      refuseImage("the " + label(member) + " member is damaged: it does not decompress to what its header says");
  };
  check(sizeIsPossible(member));
  std::string text(member.plainBytes, '\0');
  if (member.flags & Flag::zstd) {
    check(ZSTD_decompress(text.data(), text.size(), stored, member.payload.size()) == text.size());
  } else {
    int got = LZ4_decompress_safe(static_cast<const char*>(stored), text.data(),
                                  static_cast<int>(member.payload.size()), static_cast<int>(text.size()));
    check(got >= 0 && static_cast<size_t>(got) == text.size());
  }
  return text.substr(0, text.find('\0'));
}

std::string findPtx(std::span<const std::byte> image, int architecture) {
  std::optional<uint32_t> magic = magicOf(image);
  if (magic == containerMagic) return ptxOfFatbinary(image, architecture);
  if (magic == elfMagic) return ptxOfElf(image, architecture);
  return textOf(image);
}

std::span<const std::byte> imageAt(const void* pointer) {
  const auto* bytes = static_cast<const std::byte*>(pointer);
  uint32_t magic = 0;
  // Text may be shorter than a magic number, and then ends the comparison by its own NUL.
  for (size_t i = 0; i < sizeof magic && (i == 0 || bytes[i - 1] != std::byte{0}); ++i) {
    magic |= std::to_integer<uint32_t>(bytes[i]) << (8 * i);
  }
  if (magic == wrapperMagic) {
    const void* container = nullptr;  // after magic and version (fatbinary_section.h)
    std::memcpy(&container, bytes + 8, sizeof container);
    if (container == nullptr) refuseImage("the fatbinary wrapper points nowhere");
    uint32_t inner = 0;
    std::memcpy(&inner, container, sizeof inner);
    if (inner != containerMagic) refuseImage("the fatbinary wrapper does not point to a fatbinary");
    return imageAt(container);
  }
  if (magic == containerMagic) {
    std::span<const std::byte> header(bytes, containerHeaderBytes);
    uint64_t claimed = read<uint64_t>(header, 8);
    if (claimed > mostImageBytes) refuseImage("the fatbinary says that it has " + std::to_string(claimed) + " bytes");
    return {bytes, read<uint16_t>(header, 6) + claimed};
  }
  if (magic == elfMagic) {
    std::span<const std::byte> header(bytes, 64);
    // The section table is what we read, and what toolchains put last but for program headers.
    uint64_t end = read<uint64_t>(header, 40) + uint64_t{read<uint16_t>(header, 58)} * read<uint16_t>(header, 60);
    if (end > mostImageBytes) refuseImage("the ELF file's section table is out of range");
    return {bytes, std::max<uint64_t>(end, 64)};
  }
  return {bytes, std::strlen(static_cast<const char*>(pointer)) + 1};
}

}  // namespace vgpu::emulator::api
