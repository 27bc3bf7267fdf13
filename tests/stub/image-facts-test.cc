// Facts that are read from module images, made by nvcc or hostile.
#include "stub/worker/image-facts.h"

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "../emulator/container-samples.h"
#include "../image-folder.h"
#include "stub/worker/blob.h"

using namespace vgpu::stub;

namespace {

std::vector<char> loadImage(const std::string& name) {
  std::ifstream in(std::string(VGPU_TEST_IMAGES) + "/" + name, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::span<const std::byte> imageBytes(const std::vector<char>& image) { return std::as_bytes(std::span(image)); }
std::span<const std::byte> imageBytes(std::string_view text) { return std::as_bytes(std::span(text)); }

bool hasLike(const std::set<std::string>& names, const std::string& part) {
  for (auto& name : names)
    if (name.find(part) != name.npos) return true;
  return false;
}

constexpr const char* images[] = {"plain.ptx", "plain.cubin", "plain.fatbin", "stored.fatbin"};

}  // namespace

TEST_CASE("every variable is found in PTX, in machine code and in fatbinaries, compressed or not") {
  for (std::string name : images) {
    CAPTURE(name);
    auto image = loadImage(name);
    auto names = findFacts(imageBytes(image)).variables;
    for (const char* wanted : {"counter", "weights", "scale", "never", "calls"}) {
      CAPTURE(wanted);
      CHECK(hasLike(names, wanted));
    }
    CHECK(!names.contains(""));
  }
}

TEST_CASE("instructions and comments that mention a state space declare no variable") {
  std::string_view ptx = "ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1], %r1; cvta.to.global.u64 %rd1, %rd2;\n";
  CHECK(findFacts(imageBytes(ptx)).variables.empty());
  std::string_view managed = ".visible .global .attribute(.managed) .align 8 .v2 .f32 pair[3] = {1, 2};";
  CHECK(findFacts(imageBytes(managed)).variables == std::set<std::string>{"pair"});
  CHECK(findFacts(imageBytes(managed)).hasManaged);
  CHECK_FALSE(findFacts(imageBytes(ptx)).hasManaged);
}

TEST_CASE("modules that print, or allocate, are recognized") {
  for (std::string name : images) {
    CAPTURE(name);
    auto image = loadImage(name);
    auto facts = findFacts(imageBytes(image));
    CHECK_FALSE(facts.prints);
    CHECK_FALSE(facts.usesHeap);
  }
  auto prints = loadImage("prints.fatbin"), allocates = loadImage("allocates.cubin");
  CHECK(findFacts(imageBytes(prints)).prints);
  CHECK_FALSE(findFacts(imageBytes(prints)).usesHeap);
  CHECK(findFacts(imageBytes(allocates)).usesHeap);
  std::string_view runtime = ".extern .func (.param .b32 r) __cudaCDP2Malloc (.param .b64 p, .param .b64 n);\n";
  CHECK(findFacts(imageBytes(runtime)).usesHeap);  // cudaMalloc() of a kernel
}

TEST_CASE("machine code in a fatbinary is read for the GPUs that could run it, PTX for all") {
  auto code = loadImage("allocates.cubin"), ptx = loadImage("plain.ptx");
  using vgpu::test::member, vgpu::test::Packing;
  auto image = vgpu::test::fatbinary(member(2, 75, {code.data(), code.size()}, Packing::zstd));
  CHECK(findFacts(imageBytes(image)).usesHeap);
  CHECK(findFacts(imageBytes(image), majorOf(70)).usesHeap);
  auto others = findFacts(imageBytes(image), majorOf(90));
  CHECK_FALSE(others.usesHeap);
  CHECK(others.variables.empty());
  CHECK(others.majors == majorOf(90));
  auto text = vgpu::test::fatbinary(member(1, 75, {ptx.data(), ptx.size()}, Packing::zstd));
  CHECK(hasLike(findFacts(imageBytes(text), majorOf(90)).variables, "counter"));
}

TEST_CASE("an image in the store whose facts were read for another GPU is read again") {
  auto code = loadImage("allocates.cubin");
  auto image = vgpu::test::fatbinary(vgpu::test::member(2, 75, {code.data(), code.size()}, vgpu::test::Packing::zstd));
  vgpu::test::ImageFolder folder;
  ImageStore store = folder.open();
  auto digest = vgpu::digestOf(imageBytes(image));
  store.add(digest, imageBytes(image), findFacts(imageBytes(image), majorOf(90)));
  auto stored = store.find(digest);
  REQUIRE(stored != nullptr);
  CHECK_FALSE(Blob(stored, majorOf(90)).facts().usesHeap);
  CHECK(Blob(stored, majorOf(75)).facts().usesHeap);
}

TEST_CASE("a damaged image is never read out of bounds, and gives no facts about kernels that were not read") {
  for (std::string name : images) {
    auto good = loadImage(name);
    for (size_t size = 0; size < good.size(); size += 1 + good.size() / 200) {
      std::vector<char> cut(good.begin(), good.begin() + static_cast<ptrdiff_t>(size));
      CHECK_FALSE(findFacts(imageBytes(cut)).usesHeap);
      std::vector<char> bent = good;
      bent[size] = static_cast<char>(bent[size] ^ 0x81);
      CHECK_FALSE(findFacts(imageBytes(bent)).usesHeap);
    }
  }
}

TEST_CASE("if a member does not decompress, only its own kernels' behaviour is unknown") {
  auto membersOf = [](const std::string& name) {
    auto image = loadImage(name);
    return std::string(image.begin() + 16, image.end());
  };
  std::string good = membersOf("prints.fatbin"), bad = membersOf("plain.fatbin");
  bad[64 + 20] ^= 0x55;  // inside the compressed text
  auto facts = findFacts(imageBytes(vgpu::test::fatbinary(good + bad)));
  CHECK(facts.problem == "");
  CHECK(facts.unknown == "the member at byte " + std::to_string(16 + good.size()) +
                             " does not decompress to what its header says");
  CHECK(facts.prints);
  CHECK_FALSE(facts.usesHeap);
  CHECK(findFacts(imageBytes(vgpu::test::fatbinary(good))).unknown == "");
  CHECK_FALSE(findFacts(imageBytes(vgpu::test::fatbinary(bad))).prints);
}

TEST_CASE("a member larger than the limit is refused with its size, and its kernels are not reported to use malloc") {
  auto image = loadImage("plain.fatbin");
  uint64_t claimed = (uint64_t{1} << 30) + 1;
  std::memcpy(image.data() + 16 + 56, &claimed, sizeof claimed);
  auto facts = findFacts(imageBytes(image));
  INFO(facts.problem);
  CHECK(facts.problem.find("1073741825") != std::string::npos);
  CHECK_FALSE(facts.usesHeap);
  CHECK_FALSE(facts.prints);
}
