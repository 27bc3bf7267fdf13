#include "stub/worker/image-parts.h"

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>

#include "stub/worker/image-bytes.h"
#include "vgpu/wire/arena.h"

namespace vgpu::stub {

namespace {

constexpr uint32_t containerMagic = 0xba55ed50;
constexpr uint64_t containerHeaderBytes = 16, memberHeaderBytes = 64;
constexpr uint64_t lz4Flag = 0x2000, zstdFlag = 0x8000;
// A member that is larger, decompressed, is taken for a damaged or hostile size field; real ones are some tens of MiB.
constexpr uint64_t mostPlainBytes = 1 * GiB;

// Types of sections without bytes in the file, besides SHT_NOBITS, as relocatable device code of nvcc 13 has them: .nv.global,
// .nv.local and .nv.shared.
constexpr uint32_t deviceGlobal = SHT_LOPROC + 7, deviceLocal = SHT_LOPROC + 9, deviceShared = SHT_LOPROC + 10;

bool isInside(uint64_t offset, uint64_t bytes, uint64_t size) { return offset <= size && bytes <= size - offset; }

bool hasBytes(const Elf64_Shdr& section) {
  auto type = section.sh_type;
  return type != SHT_NULL && type != SHT_NOBITS && type != deviceGlobal && type != deviceLocal && type != deviceShared;
}

// The driver knows formats by their first bytes; to it a text is what has none of them.
bool isText(std::string_view part) {
  auto start = part.substr(0, 4);
  start = start.substr(0, start.find('\0'));
  return !start.empty() && std::all_of(start.begin(), start.end(),
                                       [](unsigned char each) { return std::isprint(each) || std::isspace(each); });
}

struct Member {
  Bytes payload;          // as stored, without padding where it is compressed
  uint64_t plainBytes;
  bool isLz4, isZstd;
};

// The member whose header begins at `at`, all of which lies in `container`; `next` is where the one behind it begins.
std::string readMember(Bytes container, uint64_t at, Member& member, uint64_t& next) {
  auto rest = container.subspan(at);
  auto outside = [&](const char* what) { return fmt::format("{} of the member at byte {} leads out of it", what, at); };
  if (rest.size() < memberHeaderBytes) return outside("the header");
  auto headerBytes = read<uint32_t>(rest, 4), compressed = read<uint32_t>(rest, 16), options = read<uint32_t>(rest, 20);
  auto name = read<uint32_t>(rest, 32), nameBytes = read<uint32_t>(rest, 36);
  auto payloadBytes = read<uint64_t>(rest, 8), flags = read<uint64_t>(rest, 40);
  if (headerBytes < memberHeaderBytes || headerBytes > rest.size()) return outside("the header");
  if (payloadBytes > rest.size() - headerBytes) return outside("the payload");
  if (options != 0 && !isInside(options, sizeof(uint64_t), headerBytes)) return outside("the options record");
  if (!isInside(name, nameBytes, headerBytes)) return outside("the name");
  member = {rest.subspan(headerBytes, payloadBytes), payloadBytes, (flags & lz4Flag) != 0, (flags & zstdFlag) != 0};
  next = at + headerBytes + payloadBytes;
  if (!member.isLz4 && !member.isZstd) return "";
  if (compressed > payloadBytes) return outside("the compressed size");
  member.payload = member.payload.first(compressed);
  member.plainBytes = read<uint64_t>(rest, 56);
  if (member.plainBytes > mostPlainBytes)
    return fmt::format("the member at byte {} has {} bytes, decompressed; the most is {}", at, member.plainBytes,
                       mostPlainBytes);
  return "";
}

// Whether the payload can become as much as its header says: known before room is made for it.
bool sizeIsPossible(const Member& member) {
  constexpr uint64_t mostLz4Ratio = 255;  // LZ4 block format: a byte of match length stands for up to 255
  if (!member.isZstd) return member.plainBytes / mostLz4Ratio <= member.payload.size();
  auto size = ZSTD_getFrameContentSize(member.payload.data(), member.payload.size());
  return size == member.plainBytes || size == ZSTD_CONTENTSIZE_UNKNOWN;
}

// Nothing where it does not decompress to what its header says.
std::optional<std::string> decompress(const Member& member) {
  auto& stored = member.payload;
  if (stored.size() > std::numeric_limits<int>::max() || !sizeIsPossible(member)) return std::nullopt;
  std::string plain(member.plainBytes, '\0');
  size_t done = member.isZstd ? ZSTD_decompress(plain.data(), plain.size(), stored.data(), stored.size())
                              : static_cast<size_t>(LZ4_decompress_safe(charactersOf(stored), plain.data(),
                                                                        static_cast<int>(stored.size()),
                                                                        static_cast<int>(plain.size())));
  if (done != plain.size()) return std::nullopt;  // as where either says that it failed
  return plain;
}

// Visits what may be in a fatbinary: text, ELF files, and intermediate code of kinds that the driver tells apart by the
// member's header. What is wrong with it.
std::string readPart(std::string_view part, const std::function<void(std::string_view)>& visit) {
  if (isElf(part) && !elfSections(std::as_bytes(std::span(part))))
    return "a table, section or segment leads out of its ELF file";
  visit(part);
  return "";
}

ImageReading readContainer(Bytes image, const std::function<void(std::string_view)>& visit) {
  ImageReading reading;
  uint64_t headerBytes = read<uint16_t>(image, 6), bytes = read<uint64_t>(image, 8);
  if (headerBytes < containerHeaderBytes || !isInside(headerBytes, bytes, image.size())) {
    reading.problem = fmt::format("the fatbinary says that it has {} bytes, there are {}", bytes, image.size());
    return reading;
  }
  auto container = image.first(headerBytes + bytes);
  for (uint64_t at = headerBytes; at < container.size();) {
    Member member;
    reading.problem = readMember(container, at, member, at);
    if (!reading.problem.empty()) return reading;
    if (member.isLz4 || member.isZstd) {
      auto plain = decompress(member);
      reading.isWhole = reading.isWhole && plain;
      if (plain) reading.problem = readPart(*plain, visit);
    } else {
      reading.problem = readPart(textOf(member.payload), visit);
    }
    if (!reading.problem.empty()) return reading;
  }
  return reading;
}

}  // namespace

bool isElf(std::string_view part) { return part.starts_with(std::string_view(ELFMAG, SELFMAG)); }

std::optional<std::vector<Elf64_Shdr>> elfSections(std::span<const std::byte> elf) {
  if (elf.size() < sizeof(Elf64_Ehdr)) return std::nullopt;
  auto header = read<Elf64_Ehdr>(elf, 0);
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return std::nullopt;
  std::vector<Elf64_Shdr> sections;
  uint64_t count = header.e_shnum;
  // A file with more sections than that field can say has their number in the first of them (the ELF specification).
  if (count == 0 && header.e_shoff != 0) {
    if (!isInside(header.e_shoff, sizeof(Elf64_Shdr), elf.size())) return std::nullopt;
    count = read<Elf64_Shdr>(elf, header.e_shoff).sh_size;
  }
  if (count > elf.size() / sizeof(Elf64_Shdr) || header.e_phnum > elf.size() / sizeof(Elf64_Phdr) ||
      (count != 0 && header.e_shentsize != sizeof(Elf64_Shdr)) ||
      (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr)) ||
      (count != 0 && !isInside(header.e_shoff, count * sizeof(Elf64_Shdr), elf.size())) ||
      (header.e_phnum != 0 && !isInside(header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr), elf.size())))
    return std::nullopt;
  for (uint64_t i = 0; i < count; ++i) {
    auto section = read<Elf64_Shdr>(elf, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (hasBytes(section) && !isInside(section.sh_offset, section.sh_size, elf.size())) return std::nullopt;
    sections.push_back(section);
  }
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    auto segment = read<Elf64_Phdr>(elf, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_filesz != 0 && !isInside(segment.p_offset, segment.p_filesz, elf.size())) return std::nullopt;
  }
  return sections;
}

ImageReading readImage(std::span<const std::byte> image, const std::function<void(std::string_view)>& visit) {
  if (image.size() >= sizeof containerMagic && read<uint32_t>(image, 0) == containerMagic) {
    if (image.size() >= containerHeaderBytes) return readContainer(image, visit);
    return {.problem = "the fatbinary ends within its header"};
  }
  auto whole = textOf(image);
  if (!isElf(whole) && !isText(whole)) return {.problem = "it is neither PTX text nor an ELF file nor a fatbinary"};
  return {.problem = readPart(whole, visit)};
}

}  // namespace vgpu::stub
