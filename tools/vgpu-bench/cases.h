// What vgpu-bench runs, and what its figures should be. A case is one command, run natively and virtually in turn.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace vgpu::bench {

struct Case {
  std::string name;                  // what --only matches: "programs/scan"
  std::vector<std::string> command;  // its first word is an installed case program, or what the person gave
  std::string prefix = "";           // of the names of the figures that the program prints
  std::string wholeProcess = "";     // what to call the time from its start to its end; empty: not reported
  std::string memory = "";           // what to call its highest resident memory; empty: not reported
  int copies = 1;                    // started together; the time is that of all of them
  bool countsLaunches = false;       // whether the share of launches that were folded is reported
  bool ownFigures = true;            // whether what the program itself measured is reported

  // The chart that its figures are in: the name's part before the slash.
  std::string group() const { return name.substr(0, name.find('/')); }
};

// All installed cases, smaller ones (for the emulated device) where `quick`.
std::vector<Case> installedCases(bool quick);

// Those of which one of the shell patterns matches the name, or what is before or after its slash; all if there is
// no pattern.
std::vector<Case> matching(const std::vector<Case>& cases, const std::vector<std::string>& patterns);

// The case of any command.
Case commandCase(const std::vector<std::string>& command);

// How a figure is judged: virtual ÷ native or virtual − native must not be more, or virtual not less.
struct Wanted {
  enum class Kind { ratio, difference, least } kind = Kind::ratio;
  double limit = 0;
};

// What is wanted of the figure called `name`, in the figure's own unit for a difference.
std::optional<Wanted> wantedOf(const std::string& name);

}  // namespace vgpu::bench
