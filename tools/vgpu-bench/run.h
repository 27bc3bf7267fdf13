// Runs one command once, and measures it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace vgpu::bench {

struct Figure {
  std::string name, unit;
  double value = 0;
};

// A process's output in the lines defined by tests/programs/bench.h; other lines are ignored.
struct Report {
  std::vector<Figure> figures;
  std::string digest;
};
Report parseReport(const std::string& output);

struct Run {
  double microseconds = 0;      // from the first start to the last end
  double residentKiB = 0;       // the maximum of its processes
  std::vector<Report> reports;  // one per copy
  std::optional<double> folded = {};  // percentage of its launches that were folded into graphs, if that was requested
};

// Starts `copies` of the command together and waits for all of them. Standard output is read, or dropped for a user's command, because it
// may be long; standard error is inherited. Throws kj::Exception if a copy cannot be started or does not return 0, with its output.
Run runCopies(const std::vector<std::string>& command, int copies, bool readsOutput);

}  // namespace vgpu::bench
