// For programs that print CUDA's results for right and wrong uses, but no addresses, times or properties of one GPU: their output is the
// same on every machine. golden/ has the results of a GPU's own driver, and the known differences in a session (README.md).
#pragma once

#include <sys/wait.h>

#include <cinttypes>

#include "../driver-entry.h"

// A part of a program that runs in its own process, so that a fault ends only the section.
struct Section {
  const char* name;
  void (*run)();
};
inline std::vector<Section>& sections() {
  static std::vector<Section> all;
  return all;
}
inline const char* currentSection = "";

#define SECTION(name)                                                           \
  static void name();                                                           \
  static const bool name##IsListed = (sections().push_back({#name, name}), true); \
  static void name()

inline const char* nameOf(cudaError_t result) { return cudaGetErrorName(result); }
inline const char* nameOf(CUresult result) {
  const char* name = nullptr;
  DRIVER(cuGetErrorName)(result, &name);
  return name == nullptr ? "?" : name;
}

template <typename Result>
Result say(const char* call, Result result) {
  std::printf("%s: %s = %s\n", currentSection, call, nameOf(result));
  return result;
}
inline void sayValue(const char* what, int64_t value) { std::printf("%s: %s is %" PRId64 "\n", currentSection, what, value); }

// Prints a runtime call with its result; a driver call; a number.
#define SAY(call) say(#call, call)
#define SAYCU(name, ...) say(#name "(" #__VA_ARGS__ ")", findInDriver<decltype(&name)>(#name)(__VA_ARGS__))
#define VALUE(expression) sayValue(#expression, static_cast<int64_t>(expression))

int main() {
  setvbuf(stdout, nullptr, _IOLBF, 0);  // so that output before a crash is not lost
  for (auto& section : sections()) {
    currentSection = section.name;
    pid_t child = fork();
    if (child == 0) {
      alarm(60);
      section.run();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) std::printf("%s: ended by signal %d\n", currentSection, WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0) std::printf("%s: exit code %d\n", currentSection, WEXITSTATUS(status));
  }
  return 0;
}
