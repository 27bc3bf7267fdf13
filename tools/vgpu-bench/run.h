// Runs one command, once, and says what it took and what it said.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace vgpu::bench {

struct Figure {
  std::string name, unit;
  double value = 0;
};

// What a process said in the lines of tests/programs/bench.h; other lines are not ours.
struct Report {
  std::vector<Figure> figures;
  std::string digest;
};
Report parseReport(const std::string& output);

struct Run {
  double microseconds = 0;      // from the first start to the last end
  double residentKiB = 0;       // the highest of any of its processes
  std::vector<Report> reports;  // one a copy
  std::optional<double> folded = {};  // per cent of its launches that were folded into graphs, if that was asked for
};

// Starts `copies` of the command together and waits for all of them. Standard output is read, or dropped where it is a
// person's command (it may be long); standard error is ours. Throws kj::Exception if one cannot be started or does
// not return 0, with what it printed.
Run runCopies(const std::vector<std::string>& command, int copies, bool readsOutput);

}  // namespace vgpu::bench
