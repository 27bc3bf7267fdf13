#include "tools/vgpu-bench/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "tools/common/installation.h"

namespace vgpu::bench {
namespace {

constexpr const char* description =
    "Measures what a virtual GPU costs or saves: each case runs natively and virtually in turn.\n"
    "Where there is no NVIDIA driver, or on the emulated device, it runs virtually only.";
constexpr const char* examples =
    "Examples:\n"
    "  vgpu-bench                                 everything, as docs/performance.md shows it\n"
    "  vgpu-bench --only calls --only 'copies/p*' --csv calls.csv\n"
    "  vgpu-bench --rounds 3 -- ./app input.bin   any command\n"
    "  vgpu-bench --device emulated               without a GPU\n"
    "What is wanted of a figure is reported and is no error.\n"
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
  app.add_option("--rounds", options.rounds, "runs of each side")
      ->capture_default_str()
      ->check(CLI::Range(1, mostRounds));
  auto* only = app.add_option("--only", options.only, "a case, or a group of them (a shell pattern); several add up");
  only->expected(1)->take_all();
  auto* list = app.add_flag("--list", options.list, "print the cases' names");
  auto* quick = app.add_flag("--quick", options.quick, "small sizes, no run ahead; always so on the emulated device");
  auto* device = app.add_option("--device", options.device, "of the vgpud that is started: as vgpud takes it");
  device->capture_default_str();
  app.add_option("--node", options.node, "use this vgpud instead: unix:DIR/vgpud.sock")->excludes(device);
  app.add_option("--csv", options.csvFile, "write the figures to this file");
  app.add_option("--json", options.jsonFile, "write the figures, with every run's, to this file");
  app.add_option("--svg", options.chartDirectory, "draw charts into this directory");
  try {
    app.parse(arguments);
    if (hasCommand && options.command.empty()) throw CLI::ValidationError("--", "there is no command after it");
    if (hasCommand && (*only || *list || *quick)) {
      throw CLI::ValidationError("--", "--only, --list and --quick are of the installed cases, not of a command");
    }
  } catch (const CLI::ParseError& error) {
    code = app.exit(error) == 0 ? 0 : 2;
    return false;
  }
  return true;
}

}  // namespace vgpu::bench
