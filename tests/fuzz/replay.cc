// Feeds a fuzz target its seeds and mutations of them: the same ones in every run, with any compiler. A target that fails ends the process;
// a refused seed is an error. `--seeds DIRECTORY` only writes the seeds there, as libFuzzer's first inputs.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>

#include "fuzz.h"

namespace {

constexpr int mutations = 4000;

class Mutator {
 public:
  explicit Mutator(std::vector<std::string> seeds) : seeds(std::move(seeds)) {}

  std::string next() {
    std::string input = any();
    for (size_t count = 1 + below(2); count > 0; --count) change(input);
    return input;
  }

 private:
  size_t below(size_t limit) { return limit ? random() % limit : 0; }
  const std::string& any() { return seeds[below(seeds.size())]; }
  std::string piece(const std::string& of) {
    const size_t begin = below(of.size());
    return of.substr(begin, 1 + below(below(3) ? 4 : 32));
  }

  void change(std::string& input) {
    const size_t at = below(input.size());
    switch (below(6)) {
      case 0:
        if (!input.empty()) input[at] = static_cast<char>(random());
        break;
      case 1:
        if (!input.empty()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
        break;
      case 2:
        input.erase(at, 1 + below(below(3) ? 4 : 32));
        break;
      case 3:
        input.insert(at, piece(any()));
        break;
      case 4:
        input.replace(at, 1 + below(8), piece(any()));
        break;
      default:
        overwriteNumber(input, at);
    }
  }

  // Readers tend to fail at sizes and offsets: bytes of a binary input, digits of a text.
  void overwriteNumber(std::string& input, size_t at) {
    static constexpr uint64_t edgeNumbers[] = {0,           1, 0x7f, 0xffff, 0x7fffffff, 0xffffffff, 0x8000000000000000,
                                               ~uint64_t{0}};
    const uint64_t number = edgeNumbers[below(std::size(edgeNumbers))];
    if (const size_t digit = input.find_first_of("0123456789", at); below(2) && digit != std::string::npos) {
      const size_t end = input.find_first_not_of("0123456789", digit);
      input.replace(digit, (end == std::string::npos ? input.size() : end) - digit, std::to_string(number));
    } else {
      const size_t bytes = std::min(input.size() - at, size_t{1} << below(4));
      std::memcpy(input.data() + at, &number, bytes);
    }
  }

  std::vector<std::string> seeds;
  std::mt19937_64 random{20261120};
};

bool feed(const std::string& input) {
  // A copy of exactly the input's size, so that a sanitizer detects a read past its end.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  return vgpu::fuzz::accepts(bytes);
}

void writeSeeds(const std::string& directory) {
  int number = 0;
  for (const std::string& seed : vgpu::fuzz::seeds()) {
    const std::string path = directory + "/seed-" + std::to_string(number++);
    if (!(std::ofstream(path, std::ios::binary) << seed)) throw std::runtime_error("cannot write " + path);
  }
}

}  // namespace

int main(int count, char** arguments) try {
  if (count == 3 && std::string_view(arguments[1]) == "--seeds") return writeSeeds(arguments[2]), 0;
  if (count != 1) throw std::runtime_error("the only arguments are --seeds DIRECTORY");
  const std::vector<std::string> seeds = vgpu::fuzz::seeds();
  for (size_t i = 0; i < seeds.size(); ++i)
    if (!feed(seeds[i])) throw std::runtime_error("seed " + std::to_string(i) + " is refused");
  Mutator mutator(seeds);
  int accepted = 0;
  for (int i = 0; i < mutations; ++i) accepted += feed(mutator.next());
  std::printf("%d of %d mutations of %zu seeds were accepted\n", accepted, mutations, seeds.size());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "replay: %s\n", error.what());
  return 1;
}
