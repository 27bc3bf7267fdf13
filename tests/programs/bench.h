// The interface between vgpu-bench and a program: `PROGRAM --bench full`, or `quick` for the emulated device. The program then
// repeats its work at a realistic size, without the check on the CPU, and prints lines for vgpu-bench:
//   figure,NAME,UNIT,VALUE     UNIT is us or KiB
//   digest,VALUE               of its results: the same in every mode and on every machine
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

// The median time of a call of `body`, over `rounds` rounds of `calls` calls; the time of `after` does not count.
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

// The benchmark options of the command line. True if a benchmark is requested.
class Bench {
 public:
  // Ends the program with code 2 if the argument of --bench is invalid.
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

  // Times `body`, which copies in, computes and copies out, between two moments without pending work, and prints the median. The first run,
  // with its one-time costs, does not count.
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

  // Prints the results' digest; returns main's result, 0.
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

// A group of cases that runs on its own: `PROGRAM --bench full|quick NAME`.
struct Group {
  const char* name;
  void (*run)(const Bench& bench);
};

// Runs the group that the command line names; returns main's result, 0, or 2 if there is none.
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
