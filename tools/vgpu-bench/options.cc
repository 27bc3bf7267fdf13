#include "tools/vgpu-bench/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "tools/common/installation.h"

namespace vgpu::bench {
namespace {

constexpr const char* description =
    "Measures what a virtual GPU costs or saves: each case runs natively and virtually in turn.\n"
    "Without an NVIDIA driver, or on the emulated device, it runs virtually only.";
constexpr const char* examples =
    "Examples:\n"
    "  vgpu-bench                                 everything, as docs/performance.md shows it\n"
    "  vgpu-bench --only calls --only 'copies/p*' --csv calls.csv\n"
    "  vgpu-bench --rounds 3 -- ./app input.bin   any command\n"
    "  vgpu-bench --device emulated               without a GPU\n"
    "A figure that misses its target is reported, but is not an error.\n"
    "Exit code: 0 measured, 1 failed, 2 wrong usage.";
constexpr int mostRounds = 1000;

}  // namespace

bool parseOptions(std::vector<std::string> arguments, BenchOptions& options, int& code) {
  auto separator = std::ranges::find(arguments, "--");
  bool hasCommand = separator != arguments.end();
  if (hasCommand) options.command.assign(separator + 1, arguments.end());
  arguments.erase(separator, arguments.end());
  std::ranges::reverse(arguments);  // CLI11 expects a vector in reverse order

  CLI::App app{description, "vgpu-bench"};
  app.footer(examples);
  app.set_version_flag("--version", std::string("vgpu-bench ") + productVersion);
  app.add_option("--rounds", options.rounds, "how many native and how many virtual runs a case has")
      ->capture_default_str()
      ->check(CLI::Range(1, mostRounds));
  auto* only = app.add_option("--only", options.only, "a case, or a group of cases (a shell pattern); may be given several times");
  only->expected(1)->take_all();
  auto* list = app.add_flag("--list", options.list, "print the cases' names");
  auto* quick = app.add_flag("--quick", options.quick, "small sizes and no warm-up run; always on with the emulated device");
  auto* device = app.add_option("--device", options.device, "the device of the vgpud that is started: as vgpud takes it");
  device->capture_default_str();
  app.add_option("--node", options.node, "use this vgpud instead: unix:DIR/vgpud.sock")->excludes(device);
  app.add_option("--csv", options.csvFile, "write the figures to this file");
  app.add_option("--json", options.jsonFile, "write the figures, and those of every run, to this file");
  app.add_option("--svg", options.chartDirectory, "draw charts into this directory");
  try {
    app.parse(arguments);
    if (hasCommand && options.command.empty()) throw CLI::ValidationError("--", "a command must follow it");
    if (hasCommand && (*only || *list || *quick)) {
      throw CLI::ValidationError("--", "--only, --list and --quick select from the installed cases; they do not go with a command");
    }
  } catch (const CLI::ParseError& error) {
    code = app.exit(error) == 0 ? 0 : 2;
    return false;
  }
  return true;
}

}  // namespace vgpu::bench
