// What vgpu-bench asks of a program: `PROGRAM --bench full`, or `quick` for the emulated device. The program then
// repeats its work at a realistic size, without the CPU's check, and prints lines for vgpu-bench to read:
//   figure,NAME,UNIT,VALUE     UNIT is us or KiB
//   digest,VALUE               of its results: the same however and wherever the program runs
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "program.h"

using Clock = std::chrono::steady_clock;

inline double microsecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

inline void printFigure(const std::string& name, const char* unit, double value) {
  std::printf("figure,%s,%s,%.3f\n", name.c_str(), unit, value);
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// The median time of one of `calls` calls of `body`, over `rounds` rounds; `after` is not counted.
template <typename Body, typename After>
void measure(const std::string& name, int rounds, int calls, Body body, After after) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) body();
    times.push_back(microsecondsSince(start) / calls);
    after();
  }
  printFigure(name, "us", median(times));
}

// What the command line asks for. True if it asks for a benchmark.
class Bench {
 public:
  // Ends the program with code 2 where what follows --bench is no size.
  Bench(int argc, char** argv) : asked(argc > 1 && std::strcmp(argv[1], "--bench") == 0) {
    if (!asked) return;
    const std::string size = argc > 2 ? argv[2] : "";
    full = size == "full";
    if (full || size == "quick") return;
    std::fprintf(stderr, "usage: %s --bench full|quick\n", argv[0]);
    std::exit(2);
  }
  explicit operator bool() const { return asked; }

  template <typename T>
  T size(T atFull, T atQuick) const {
    return full ? atFull : atQuick;
  }

  // Times `body`, which copies in, computes and copies out, from the moment when nothing is outstanding to the next
  // such one; and prints the median. What only a first run costs is not counted.
  template <typename Body>
  void steady(int repeats, Body body) const {
    const int warmUps = full ? 2 : 1;
    if (!full) repeats = 2;
    std::vector<double> times;
    for (int i = -warmUps; i < repeats; ++i) {
      const auto start = Clock::now();
      body();
      CHECK(cudaDeviceSynchronize());
      if (i >= 0) times.push_back(microsecondsSince(start));
    }
    printFigure("steady", "us", median(times));
  }

  // What main returns: 0, once the results' digest is printed.
  template <typename T>
  int digest(const std::vector<T>& results) const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(results.data());
    const size_t size = results.size() * sizeof(T);
    uint64_t sum = size;
    for (size_t i = 0; i < size; i += sizeof sum) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + i, std::min(sizeof word, size - i));
      sum = (sum ^ word) * 0x9e3779b97f4a7c15;
      sum ^= sum >> 32;
    }
    std::printf("digest,%016llx\n", static_cast<unsigned long long>(sum));
    return 0;
  }

 private:
  bool asked, full = false;
};

// A program whose cases are run one at a time: `PROGRAM --bench full|quick NAME`.
struct Group {
  const char* name;
  void (*run)(const Bench& bench);
};

// What main returns: 0, once the group that the command line names has run, else 2.
template <size_t count>
int runGroup(int argc, char** argv, const char* program, const Group (&groups)[count]) {
  const Bench bench{argc, argv};
  for (const Group& group : groups) {
    if (!bench || argc != 4 || std::strcmp(group.name, argv[3]) != 0) continue;
    group.run(bench);
    return 0;
  }
  std::fprintf(stderr, "usage: %s --bench full|quick GROUP, where GROUP is one of", program);
  for (const Group& group : groups) std::fprintf(stderr, " %s", group.name);
  std::fprintf(stderr, "\n");
  return 2;
}
