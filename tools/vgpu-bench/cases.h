// What vgpu-bench runs, and the target values of its figures. A case is one command, run natively and virtually in turn.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace vgpu::bench {

struct Case {
  std::string name;                  // compared with --only: "programs/scan"
  std::vector<std::string> command;  // its first word is an installed case program, or the user's own command
  std::string prefix = "";           // put before the names of the figures that the program prints
  std::string wholeProcess = "";     // name of the figure for the time from its start to its end; empty: not reported
  std::string memory = "";           // name of the figure for its peak resident memory; empty: not reported
  int copies = 1;                    // started at the same time; the measured time is that of all of them
  bool countsLaunches = false;       // whether to report the share of launches that were folded
  bool ownFigures = true;            // whether to report the figures that the program itself prints

  // The chart with its figures: the part of the name before the slash.
  std::string group() const { return name.substr(0, name.find('/')); }
};

// All installed cases; smaller ones (for the emulated device) if `quick`.
std::vector<Case> installedCases(bool quick);

// The cases of which a shell pattern matches the name, or the part before or after its slash; all if there is no pattern.
std::vector<Case> matching(const std::vector<Case>& cases, const std::vector<std::string>& patterns);

// The case for a user's command.
Case commandCase(const std::vector<std::string>& command);

// How a figure is judged: the maximum of virtual ÷ native or of virtual − native, or the minimum of virtual.
struct Wanted {
  enum class Kind { ratio, difference, least } kind = Kind::ratio;
  double limit = 0;
};

// The target value of the figure called `name`; for a difference in the figure's own unit.
std::optional<Wanted> wantedOf(const std::string& name);

}  // namespace vgpu::bench
