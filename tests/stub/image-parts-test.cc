// The parser of module images that decides what is passed to the driver: it finds every size field that points outside of an image.
#include "stub/worker/image-parts.h"

#include <doctest/doctest.h>
#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "../emulator/container-samples.h"
#include "stub/worker/image-facts.h"

using namespace vgpu::stub;
using namespace vgpu::test;

namespace {

constexpr std::string_view ptx = ".version 7.5\n.target sm_75\n.address_size 64\n.visible .global .u32 runs;\n";
constexpr size_t headerAt = 16;  // position of the first member's header

std::string imageFile(const std::string& name) {
  std::ifstream in(std::string(VGPU_TEST_IMAGES) + "/" + name, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

ImageReading readingOf(const std::string& image, std::string* last = nullptr) {
  return readImage(std::as_bytes(std::span(image)), [&](std::string_view part) {
    if (last != nullptr) *last = part;
  });
}
std::string problemOf(const std::string& image) { return readingOf(image).problem; }

template <typename Value>
std::string with(std::string image, size_t offset, Value value) {
  std::memcpy(image.data() + offset, &value, sizeof value);
  return image;
}

template <typename Value>
Value at(const std::string& image, size_t offset) {
  Value value;
  std::memcpy(&value, image.data() + offset, sizeof value);
  return value;
}

bool leadsOut(const std::string& image, const char* what) {
  INFO(problemOf(image));
  return problemOf(image).find(what) != std::string::npos;
}

constexpr const char* real[] = {"plain.ptx", "plain.cubin", "plain.fatbin", "stored.fatbin", "prints.fatbin", "allocates.cubin",
                                "relocatable.cubin"};

}  // namespace

TEST_CASE("images made by nvcc are valid, and every truncation of them is not, except of text") {
  for (std::string name : real) {
    CAPTURE(name);
    auto image = imageFile(name);
    CHECK(problemOf(image) == "");
    CHECK(readingOf(image).unknown == "");
    if (name == "plain.ptx") continue;
    for (size_t size = 0; size < image.size(); size += 1 + image.size() / 500) {
      CAPTURE(size);
      CHECK(problemOf(image.substr(0, size)) != "");
    }
  }
}

TEST_CASE("every size field of a fatbinary is compared with the bytes that exist") {
  for (Packing packing : {Packing::plain, Packing::lz4, Packing::zstd}) {
    auto image = fatbinary(member(1, 75, ptx, packing) + member(1, 90, ptx, packing));
    std::string text;
    CHECK(readingOf(image, &text).problem == "");
    CHECK(text.starts_with(ptx));
    uint64_t all = at<uint64_t>(image, 8), payload = at<uint64_t>(image, headerAt + 8);
    CHECK(leadsOut(with(image, 8, all + 1), "says that it has"));
    CHECK(leadsOut(with(image, 8, ~uint64_t{0}), "says that it has"));
    CHECK(leadsOut(with(image, 6, uint16_t{8}), "says that it has"));
    CHECK(leadsOut(with(image, 6, uint16_t{65528}), "says that it has"));
    CHECK(leadsOut(with(image, 8, all - 1), "payload"));
    CHECK(leadsOut(with(image, 8, 64 + payload + 63), "header"));
    for (uint32_t header : {0u, 63u, 1u << 20, ~0u}) CHECK(leadsOut(with(image, headerAt + 4, header), "header"));
    for (uint64_t bytes : {all, uint64_t{1} << 40, ~uint64_t{0}})
      CHECK(leadsOut(with(image, headerAt + 8, bytes), "payload"));
    for (uint32_t options : {60u, 65u, ~0u}) CHECK(leadsOut(with(image, headerAt + 20, options), "options"));
    CHECK(leadsOut(with(image, headerAt + 32, 65u), "name"));
    CHECK(leadsOut(with(image, headerAt + 36, 65u), "name"));
    if (packing == Packing::plain) continue;
    CHECK(leadsOut(with(image, headerAt + 16, static_cast<uint32_t>(payload + 1)), "compressed"));
    CHECK(leadsOut(with(image, headerAt + 56, (uint64_t{1} << 30) + 1), "decompressed"));
    // A wrong decompressed size: the contents are unknown, but no size points outside.
    for (uint64_t plain : {uint64_t{1}, ptx.size() - 1, ptx.size() + 1, uint64_t{1} << 30}) {
      CHECK(problemOf(with(image, headerAt + 56, plain)) == "");
      CHECK(readingOf(with(image, headerAt + 56, plain)).unknown.find("does not decompress") != std::string::npos);
    }
  }
}

TEST_CASE("every table, section and segment of machine code lies within its file, also in a fatbinary") {
  auto elf = imageFile("plain.cubin");
  auto header = at<Elf64_Ehdr>(elf, 0);
  auto bad = [&](const std::string& image) {
    CHECK(leadsOut(image, "ELF"));
    for (Packing packing : {Packing::plain, Packing::lz4, Packing::zstd})
      CHECK(leadsOut(fatbinary(member(2, 75, image, packing)), "ELF"));
  };
  bad(elf.substr(0, 63));
  bad(with(elf, offsetof(Elf64_Ehdr, e_shoff), uint64_t{elf.size() - 10}));
  bad(with(elf, offsetof(Elf64_Ehdr, e_shoff), ~uint64_t{0} - 63));
  bad(with(elf, offsetof(Elf64_Ehdr, e_phoff), ~uint64_t{0} - 55));
  bad(with(elf, offsetof(Elf64_Ehdr, e_shnum), uint16_t{65535}));
  bad(with(elf, offsetof(Elf64_Ehdr, e_phnum), uint16_t{65535}));
  bad(with(elf, offsetof(Elf64_Ehdr, e_shentsize), uint16_t{0}));
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    size_t place = header.e_shoff + i * sizeof(Elf64_Shdr);
    auto section = at<Elf64_Shdr>(elf, place);
    if (section.sh_type == SHT_NULL || section.sh_type == SHT_NOBITS) continue;  // plain.cubin has no others
    bad(with(elf, place + offsetof(Elf64_Shdr, sh_size), uint64_t{elf.size() - section.sh_offset + 1}));
    bad(with(elf, place + offsetof(Elf64_Shdr, sh_offset), ~uint64_t{0}));
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    size_t place = header.e_phoff + i * sizeof(Elf64_Phdr);
    if (at<Elf64_Phdr>(elf, place).p_filesz == 0) continue;
    bad(with(elf, place + offsetof(Elf64_Phdr, p_filesz), uint64_t{elf.size() + 1}));
    bad(with(elf, place + offsetof(Elf64_Phdr, p_offset), ~uint64_t{0}));
  }
  // More sections than the field can hold: the first section holds their number.
  auto many = with(elf, offsetof(Elf64_Ehdr, e_shnum), uint16_t{0});
  CHECK(problemOf(with(many, header.e_shoff + offsetof(Elf64_Shdr, sh_size), uint64_t{header.e_shnum})) == "");
  bad(with(many, header.e_shoff + offsetof(Elf64_Shdr, sh_size), uint64_t{1} << 58));
}

TEST_CASE("a format that vgpu does not know is not passed to a driver that may know it, such as one with a pointer") {
  for (std::string image : {std::string("\xb1\x43\x62\x46\1\0\0\0\0\0\0\0\0\0\0\0", 16), std::string("BC\xc0\xde", 4),
                            std::string(1, '\0'), std::string()})
    CHECK(leadsOut(image, "neither PTX text nor"));
  CHECK(problemOf("  \n.version 8.0") == "");
  CHECK(problemOf(".") == "");
}

TEST_CASE("a member of hundreds of MiB is read, and its module is not reported to use the heap") {
  std::string text(ptx);
  text.resize(300 << 20, ' ');
  text += ".visible .global .u32 last;\n";
  auto image = fatbinary(member(1, 75, text, Packing::zstd));
  auto facts = findFacts(std::as_bytes(std::span(image)));
  CHECK(facts.problem == "");
  CHECK_FALSE(facts.usesHeap);
  CHECK_FALSE(facts.prints);
  CHECK(facts.variables == std::set<std::string>{"runs", "last"});
}
