// Images given only by address: how far their own size fields are trusted.
#include "vgpu/image/image.h"

#include <doctest/doctest.h>
#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "vgpu/image/fatbinary.h"

using namespace vgpu::image;

namespace {

std::string imageFile(const std::string& name) {
  std::ifstream in(std::string(VGPU_TEST_IMAGES) + "/" + name, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <typename Value>
std::string with(std::string image, size_t offset, Value value) {
  std::memcpy(image.data() + offset, &value, sizeof value);
  return image;
}

std::string problemAt(const void* image) {
  std::string problem;
  CHECK(imageAt(image, problem).empty());
  return problem;
}

}  // namespace

TEST_CASE("an image has as many bytes as its file, even if sections claim to have no bytes in it") {
  for (std::string name : {"plain.cubin", "allocates.cubin", "relocatable.cubin", "plain.fatbin", "stored.fatbin"}) {
    CAPTURE(name);
    auto image = imageFile(name);
    std::string problem;
    auto bytes = imageAt(image.data(), problem);
    CHECK(problem == "");
    CHECK(bytes.data() == std::as_bytes(std::span(image)).data());
    CHECK(bytes.size() == image.size());
  }
}

TEST_CASE("a text ends with its zero byte, even if it is shorter than a magic number") {
  for (const char* text : {".version 8.0\n", ".", ""}) {
    std::vector<char> exact(text, text + std::strlen(text) + 1);  // exactly its size, so that a sanitizer detects reads beyond it
    std::string problem;
    CHECK(imageAt(exact.data(), problem).size() == exact.size());
    CHECK(problem == "");
  }
}

TEST_CASE("a wrapper stands for the image that it points to; a null pointer is refused") {
  std::string container = imageFile("plain.fatbin"), problem;
  FatbinaryWrapper wrapper{wrapperMagic, 1, container.data(), nullptr};
  CHECK(imageAt(&wrapper, problem).size() == container.size());
  CHECK(problem == "");
  wrapper.image = nullptr;
  CHECK(problemAt(&wrapper) == "the fatbinary wrapper does not point to an image");
  wrapper.image = &wrapper;
  CHECK(problemAt(&wrapper) == "the fatbinary wrapper does not point to an image");
}

TEST_CASE("an image whose size field exceeds the limit is refused before it is read") {
  auto container = imageFile("plain.fatbin"), elf = imageFile("plain.cubin");
  for (uint64_t bytes : {mostImageBytes, ~uint64_t{0}})
    CHECK(problemAt(with(container, 8, bytes).data()).find("says that it has") != std::string::npos);
  for (size_t field : {offsetof(Elf64_Ehdr, e_shoff), offsetof(Elf64_Ehdr, e_phoff)})
    for (uint64_t offset : {mostImageBytes, ~uint64_t{0}})
      CHECK(problemAt(with(elf, field, offset).data()) == "a table of the ELF file extends past its end");
  Elf64_Ehdr header;
  std::memcpy(&header, elf.data(), sizeof header);
  size_t lastSection = header.e_shoff + (header.e_shnum - 1) * sizeof(Elf64_Shdr);
  elf = with(elf, lastSection + offsetof(Elf64_Shdr, sh_type), uint32_t{SHT_PROGBITS});
  elf = with(elf, lastSection + offsetof(Elf64_Shdr, sh_size), mostImageBytes);
  CHECK(problemAt(elf.data()) == "a section extends past the end of its ELF file");
}
