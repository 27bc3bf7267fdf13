#include "tools/vgpu-bench/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <optional>
#include <sstream>

#include "tools/common/spawn.h"
#include "vgpu/base/fail.h"

namespace vgpu::bench {
namespace {

// Format: figure,NAME,UNIT,VALUE; a name may contain commas.
std::optional<Figure> parseFigure(const std::string& line) {
  size_t valueAt = line.rfind(',');
  size_t unitAt = valueAt == std::string::npos || valueAt == 0 ? valueAt : line.rfind(',', valueAt - 1);
  size_t nameAt = line.find(',');
  if (unitAt == std::string::npos || unitAt <= nameAt) return {};
  Figure figure{line.substr(nameAt + 1, unitAt - nameAt - 1), line.substr(unitAt + 1, valueAt - unitAt - 1)};
  const char* end = line.data() + line.size();
  auto [parsed, error] = std::from_chars(line.data() + valueAt + 1, end, figure.value);
  if (error != std::errc{} || parsed != end) return {};
  return figure;
}

std::string contentOf(int file) {
  struct stat status;
  KJ_SYSCALL(fstat(file, &status));
  std::string text(static_cast<size_t>(status.st_size), '\0');
  size_t got = 0;
  while (got < text.size()) {
    ssize_t more;
    KJ_SYSCALL(more = pread(file, text.data() + got, text.size() - got, static_cast<off_t>(got)));
    if (more == 0) break;
    got += static_cast<size_t>(more);
  }
  text.resize(got);
  return text;
}

// A file instead of a pipe: it takes any amount without a reader, and a child that outlives the program does not keep us waiting.
kj::AutoCloseFd makeOutput(bool isRead) {
  int file;
  if (isRead) {
    KJ_SYSCALL(file = memfd_create("vgpu-bench-output", MFD_CLOEXEC));
  } else {
    KJ_SYSCALL(file = open("/dev/null", O_WRONLY | O_CLOEXEC));
  }
  return kj::AutoCloseFd(file);
}

pid_t start(const std::vector<std::string>& command, int output) {
  SpawnRequest request;
  request.executable = command.front();
  request.arguments = command;
  request.inherits = {{output, STDOUT_FILENO}};
  request.deathSignal = SIGKILL;
  return spawn(request);
}

struct End {
  int status = 0;
  double residentKiB = 0;
};

End await(pid_t process) {
  End end;
  rusage usage;
  while (wait4(process, &end.status, 0, &usage) < 0) {
    if (errno != EINTR) KJ_FAIL_SYSCALL("wait4", errno);
  }
  end.residentKiB = static_cast<double>(usage.ru_maxrss);
  return end;
}

}  // namespace

Report parseReport(const std::string& output) {
  Report report;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("digest,")) report.digest = line.substr(line.find(',') + 1);
    if (!line.starts_with("figure,")) continue;
    auto figure = parseFigure(line);
    if (!figure) fail("a case printed a line that is not a figure: " + line);
    report.figures.push_back(*figure);
  }
  return report;
}

Run runCopies(const std::vector<std::string>& command, int copies, bool readsOutput) {
  std::vector<kj::AutoCloseFd> outputs;
  for (int i = 0; i < copies; ++i) outputs.push_back(makeOutput(readsOutput));
  std::vector<pid_t> processes;
  auto begin = std::chrono::steady_clock::now();
  for (auto& output : outputs) processes.push_back(start(command, output));
  std::vector<End> ends;
  for (pid_t process : processes) ends.push_back(await(process));
  Run run;
  run.microseconds = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  for (size_t i = 0; i < ends.size(); ++i) {
    std::string output = readsOutput ? contentOf(outputs[i]) : "";
    if (ends[i].status != 0) {
      fail(fmt::format("`{}` {}{}{}", fmt::join(command, " "), describeExit(ends[i].status),
                       output.empty() ? "" : "; it printed:\n", output));
    }
    run.reports.push_back(parseReport(output));
    run.residentKiB = std::max(run.residentKiB, ends[i].residentKiB);
  }
  return run;
}

}  // namespace vgpu::bench
