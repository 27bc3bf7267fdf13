#include "stub/worker/image-file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "vgpu/wire/arena.h"

namespace vgpu::stub {

namespace {

constexpr char fileMagic[8] = {'v', 'g', 'p', 'u', 'i', 'm', 'a', 'g'};
constexpr uint32_t fileVersion = 6;
constexpr uint64_t pageBytes = 4096;
constexpr uint64_t printsFlag = 1, heapFlag = 2, managedFlag = 4;

struct Checksum {  // XXH3-128
  uint64_t low, high;
  bool operator==(const Checksum&) const = default;
};
Checksum checksumOf(std::span<const std::byte> bytes) {
  XXH128_hash_t sum = XXH3_128bits(bytes.data(), bytes.size());
  return {sum.low64, sum.high64};
}

struct FileHeader {
  char magic[8];
  uint32_t version, reserved;
  Checksum checksum;  // of all that follows, up to the image
  ImageDigest digest;
  uint64_t flags, imageBytes, nameBytes, majors;
  uint64_t codeArchitecture, codeBytes;
  Checksum imageChecksum, codeChecksum;
};
static_assert(sizeof(FileHeader) == 144);
constexpr size_t uncheckedBytes = offsetof(FileHeader, digest);

constexpr uint64_t imageOffset(uint64_t nameBytes) { return roundUp(sizeof(FileHeader) + nameBytes, pageBytes); }
// Without code the file ends with the zero byte after the image.
constexpr uint64_t gapBytes(uint64_t imageBytes, uint64_t codeBytes) {
  return codeBytes == 0 ? 1 : roundUp(imageBytes + 1, pageBytes) - imageBytes;
}

// Each name is followed by a zero byte.
std::string joined(const std::set<std::string>& names) {
  std::string all;
  for (auto& name : names) all.append(name).push_back('\0');
  return all;
}

std::set<std::string> parted(std::string_view all) {
  std::set<std::string> names;
  for (size_t at = 0; at < all.size();) {
    size_t end = std::min(all.find('\0', at), all.size());
    names.emplace_hint(names.end(), all.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

}  // namespace

StoredImage::StoredImage(StoredImage&& other) noexcept
    : file(std::exchange(other.file, {})), image(std::exchange(other.image, {})), found(std::move(other.found)), unpacked(other.unpacked) {}

StoredImage& StoredImage::operator=(StoredImage&& other) noexcept {
  std::swap(file, other.file);
  std::swap(image, other.image);
  std::swap(found, other.found);
  std::swap(unpacked, other.unpacked);
  return *this;
}

StoredImage::~StoredImage() {
  if (!file.empty()) munmap(const_cast<std::byte*>(file.data()), file.size());
}

std::optional<StoredImage> StoredImage::read(int fd, const ImageDigest& digest, std::string& damage) {
  struct stat status;
  if (fstat(fd, &status) < 0 || status.st_size < static_cast<off_t>(sizeof(FileHeader))) {
    damage = "it is shorter than its header";
    return std::nullopt;
  }
  auto bytes = static_cast<size_t>(status.st_size);
  void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
  if (mapped == MAP_FAILED) return std::nullopt;
  StoredImage stored;
  stored.file = {static_cast<const std::byte*>(mapped), bytes};
  damage = stored.check(digest);
  if (!damage.empty()) return std::nullopt;
  return stored;
}

// Checks the sizes first, so that nothing outside the file is read; then the checksum, before any field under it is used; then the digest,
// the image and the code.
std::string StoredImage::check(const ImageDigest& digest) {
  FileHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.magic, fileMagic, sizeof fileMagic) != 0) return "it is not an image file";
  if (header.version != fileVersion)
    return fmt::format("its format version is {}, not {}", header.version, fileVersion);
  bool arePossible = header.nameBytes <= file.size() && header.imageBytes <= file.size() && header.codeBytes <= file.size();
  uint64_t gap = arePossible ? gapBytes(header.imageBytes, header.codeBytes) : 0;
  uint64_t codeOffset = arePossible ? imageOffset(header.nameBytes) + header.imageBytes + gap : 0;
  if (!arePossible || codeOffset + header.codeBytes != file.size())
    return fmt::format("it has {} bytes, which its header does not say", file.size());
  auto checked = file.first(imageOffset(header.nameBytes)).subspan(uncheckedBytes);
  if (checksumOf(checked) != header.checksum) return "its checksum does not match";
  image = file.subspan(imageOffset(header.nameBytes), header.imageBytes);
  if (header.digest != digest) return "its image is not the one that its name says";
  unpacked = {static_cast<unsigned>(header.codeArchitecture), file.subspan(codeOffset)};
  if (checksumOf(image) != header.imageChecksum || file[codeOffset - gap] != std::byte{0}) return "its image's checksum does not match";
  if (checksumOf(unpacked.bytes) != header.codeChecksum) return "its code's checksum does not match";
  auto* names = static_cast<const char*>(static_cast<const void*>(file.data() + sizeof header));
  found = {.prints = (header.flags & printsFlag) != 0,
           .usesHeap = (header.flags & heapFlag) != 0,
           .hasManaged = (header.flags & managedFlag) != 0,
           .variables = parted({names, header.nameBytes}),
           .majors = header.majors};
  return "";
}

std::vector<std::byte> imageFileHead(const ImageDigest& digest, std::span<const std::byte> image, const ImageFacts& facts,
                                     const ImageCode& code) {
  std::string names = joined(facts.variables);
  FileHeader header{};
  std::memcpy(header.magic, fileMagic, sizeof fileMagic);
  header.version = fileVersion;
  header.flags = (facts.prints ? printsFlag : 0) | (facts.usesHeap ? heapFlag : 0) | (facts.hasManaged ? managedFlag : 0);
  header.imageBytes = image.size();
  header.nameBytes = names.size();
  header.majors = facts.majors;
  header.digest = digest;
  header.imageChecksum = checksumOf(image);
  header.codeArchitecture = code.architecture;
  header.codeBytes = code.bytes.size();
  header.codeChecksum = checksumOf(code.bytes);
  std::vector<std::byte> head(imageOffset(names.size()));
  std::memcpy(head.data(), &header, sizeof header);
  std::memcpy(head.data() + sizeof header, names.data(), names.size());
  header.checksum = checksumOf(std::span(head).subspan(uncheckedBytes));
  std::memcpy(head.data(), &header, sizeof header);
  return head;
}

std::vector<std::byte> imageFileGap(std::span<const std::byte> image, const ImageCode& code) {
  return std::vector<std::byte>(gapBytes(image.size(), code.bytes.size()));
}

}  // namespace vgpu::stub
