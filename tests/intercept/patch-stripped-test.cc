// A runtime's functions found without symbols are the functions that the symbols name.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>

#include "intercept/patch/stripped-runtime.h"
#include "vgpu/image/elf-file.h"

using namespace vgpu::runtime;
using namespace vgpu::image;

namespace {

const std::string folder = VGPU_TEST_PROGRAMS "/";

std::map<std::string, uint64_t> bySymbols(const Elf& file) {
  std::map<std::string, uint64_t> functions;
  const auto table = file.findSection(SHT_SYMTAB);
  REQUIRE(table);
  for (const auto& symbol : file.symbolsOf(*table)) {
    const std::string name(file.nameOf(*table, symbol));
    const bool isOfRuntime = name.starts_with("cuda") || name.starts_with("__cuda");
    const bool isProgramsOwn = name == "__cudaUnregisterBinaryUtil";  // the compiler's own function
    if (isOfRuntime && !isProgramsOwn && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value != 0)
      functions.emplace(name, symbol.st_value);
  }
  return functions;
}

std::map<std::string, uint64_t> found(const Elf& file) {
  std::map<std::string, uint64_t> functions;
  for (const RuntimeFunction& each : findStrippedRuntime(file)) {
    CHECK(each.hasRoom);
    CHECK(functions.emplace(each.name, each.address).second);
  }
  return functions;
}

std::string contentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("every function of a runtime is found where its symbol is") {
  for (std::string name : {VGPU_TEST_RUNTIMES, "sample", "sample-no-pie", "plugin.so"}) {
    CAPTURE(name);
    ElfFile file((folder + name).c_str());
    auto symbols = bySymbols(file);
    symbols.erase("__cudaGetProcAddress");  // of CUDA 13 alone, and called by nothing that compilers make
    CHECK(symbols.size() > 400);
    auto functions = found(file);
    for (auto& [function, address] : symbols) {
      CAPTURE(function);
      CHECK(functions[function] == address);
    }
    CHECK(functions.size() == symbols.size());
  }
}

TEST_CASE("an object without a runtime has none of its functions, even if it has their names") {
  for (std::string name : {"sample-shared", "host-only-shared", "plugin-shared.so", "names-alone.so", "sample-no-unwind"}) {
    CAPTURE(name);
    CHECK(findStrippedRuntime(ElfFile((folder + name).c_str())).empty());
  }
}

TEST_CASE("in a damaged object most functions are found, or none, and nothing outside of it is read") {
  const std::string whole = contentOf(folder + "sample-stripped");
  const size_t all = findStrippedRuntime(Elf(std::as_bytes(std::span(whole)))).size();
  REQUIRE(all > 400);
  std::mt19937 random(1);
  // The headers, the unwind table and the names are in the first and last parts; the rest is code.
  for (int round = 0; round < 60; ++round) {
    std::string damaged = whole;
    for (int i = 0; i < 200; ++i) damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    for (int i = 0; i < 4; ++i) damaged[16 + random() % 1000] ^= static_cast<char>(1 << random() % 8);
    if (round % 3 == 0) damaged.resize(random() % damaged.size());
    const size_t count = findStrippedRuntime(Elf(std::as_bytes(std::span(damaged)))).size();
    CHECK((count == 0 || count > 300));
  }
}
