// Runs a program of this folder under libcudart and the recording driver, and returns what it did.
#pragma once
#include <string>
#include <vector>

struct Outcome {
  int status;                      // exit code, or 128 + the signal that ended it
  std::string output;              // standard output
  std::string errors;              // standard error
  std::vector<std::string> calls;  // calls of the driver, in order

  bool called(const std::string& start) const;     // whether a line of `calls` begins with `start`
  size_t countOf(const std::string& start) const;  // how many of them do
  bool printed(const std::string& line) const;     // whether the output has exactly this line
};

// Runs `command` with libcudart preloaded; `environment` adds NAME=value pairs.
Outcome runPreloaded(const std::vector<std::string>& command, const std::vector<std::string>& environment = {});
// Runs `command` without libcudart.
Outcome runPlain(const std::vector<std::string>& command);
