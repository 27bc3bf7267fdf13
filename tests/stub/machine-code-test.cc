// Which machine code of a fatbinary is unpacked for a GPU, and when the choice is left to the driver.
#include "stub/worker/machine-code.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "../emulator/container-samples.h"
#include "../files.h"
#include "vgpu/image/fatbinary.h"

using namespace vgpu::stub;
using vgpu::image::architectureSpecific, vgpu::image::familySpecific;
using vgpu::test::bytesOf, vgpu::test::fatbinary, vgpu::test::Packing;

namespace {

constexpr uint16_t ptxKind = 1, codeKind = 2, otherKind = 8;

std::string codeFile() {
  std::ifstream in(VGPU_TEST_IMAGES "/plain.cubin", std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

// An ELF file with a distinguishing last byte.
std::string code(char mark) { return codeFile() + mark; }

std::string member(unsigned architecture, char mark, Packing packing = Packing::zstd, uint64_t flags = 0) {
  return vgpu::test::member(codeKind, architecture, code(mark), packing, flags);
}

std::string ptxMember(unsigned architecture) { return vgpu::test::member(ptxKind, architecture, ".version 7.5\n", Packing::zstd); }

// The distinguishing byte of the unpacked code, 0 if nothing is unpacked.
char markFor(const std::string& members, unsigned architecture) {
  std::string image = fatbinary(members), found = unpackedCode(bytesOf(image), architecture);
  if (found.empty()) return 0;
  CHECK(found == code(found.back()));
  return found.back();
}

}  // namespace

TEST_CASE("the code for the GPU's major version and the highest minor version that is not above the GPU's is unpacked") {
  std::string members = member(75, 'a') + member(80, 'b') + ptxMember(80) + member(86, 'c') + member(90, 'd') + ptxMember(120);
  for (auto [architecture, mark] : {std::pair(75u, 'a'), {80u, 'b'}, {86u, 'c'}, {87u, 'c'}, {89u, 'c'}, {90u, 'd'}}) {
    CAPTURE(architecture);
    CHECK(markFor(members, architecture) == mark);
  }
  for (unsigned architecture : {0u, 70u, 72u, 100u, 120u}) CHECK(markFor(members, architecture) == 0);
  CHECK(markFor(member(90, 'e', Packing::lz4), 90) == 'e');
  CHECK(markFor(member(89, 'f') + member(80, 'g'), 89) == 'f');  // in any order
}

TEST_CASE("uncompressed, ambiguous, or unknown members are left to the driver") {
  CHECK(markFor(member(90, 'a', Packing::plain), 90) == 0);
  CHECK(markFor(member(80, 'a') + member(86, 'b', Packing::plain), 86) == 0);
  CHECK(markFor(member(90, 'a') + member(90, 'b'), 90) == 0);
  CHECK(markFor(member(90, 'a') + member(90, 'b', Packing::zstd, architectureSpecific), 90) == 0);
  CHECK(markFor(member(100, 'a') + member(100, 'b', Packing::zstd, familySpecific), 103) == 0);
  CHECK(markFor(member(90, 'a') + vgpu::test::member(otherKind, 90, "code", Packing::plain), 90) == 0);
  CHECK(markFor(ptxMember(90), 90) == 0);
  CHECK(markFor(member(80, 'a') + member(80, 'b') + member(86, 'c'), 86) == 'c');
  CHECK(markFor(member(100, 'a', Packing::zstd, architectureSpecific) + member(90, 'b'), 90) == 'b');  // for another GPU
}

TEST_CASE("nothing is unpacked from an image that is not a fatbinary, or whose code is damaged") {
  std::string cubin = code('a');
  CHECK(unpackedCode(bytesOf(cubin), 75).empty());
  CHECK(unpackedCode({}, 75).empty());
  CHECK(markFor(vgpu::test::member(codeKind, 90, "no ELF file", Packing::zstd), 90) == 0);
  std::string image = fatbinary(member(90, 'a'));
  for (size_t size = 0; size < image.size(); size += 7)
    CHECK(unpackedCode(bytesOf(image).first(size), 90).empty());
}
