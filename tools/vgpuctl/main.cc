// vgpuctl: what a person does with virtual GPUs.
#include <CLI/CLI.hpp>
#include <functional>

#include "tools/common/installation.h"
#include "tools/common/reason.h"
#include "tools/common/spawn.h"
#include "tools/vgpuctl/arguments.h"
#include "tools/vgpuctl/commands.h"

namespace vgpu::ctl {
namespace {

constexpr const char* examples =
    "Examples:\n"
    "  vgpuctl run -- ./app input.bin             run a CUDA program on a virtual GPU\n"
    "  vgpuctl ps                                 what runs on this node\n"
    "  vgpuctl suspend app --to /var/tmp/app-1    free the GPU; the program waits\n"
    "  vgpuctl --node unix:/run/b/vgpud.sock resume /var/tmp/app-1\n"
    "                                             go on with another node's GPU\n"
    "SESSION is an id, a name or a pid, as `vgpuctl ps` shows them; id:ID, name:NAME and pid:PID say which of these.\n"
    "Exit code: 0 done, 1 failed, 2 wrong usage; `run` returns the program's own (128 + n where signal n killed it).";

struct Options {
  std::string node, session, directory, target;
  unsigned timeoutSeconds = 60;
  bool json = false, workers = false;
  RunOptions run;
};

using Command = std::function<int(const NodeAddress&, const Options&)>;

void addJson(CLI::App* command, Options& options) {
  command->add_flag("--json", options.json, "print JSON, for scripts");
}

// Each command's options, beside what it does with them.
void addCommands(CLI::App& app, Options& options, Command& chosen) {
  auto on = [&](CLI::App* command, Command action) {
    command->callback([&chosen, action = std::move(action)] { chosen = action; });
    return command;
  };
  auto* run = on(app.add_subcommand("run", "Run a program on a virtual GPU"),
                 [](const NodeAddress& node, const Options& o) { return runProgram(node, o.run); });
  run->add_option("--name", options.run.name, "the session's name (default: the program's file name)");
  run->add_option("command", options.run.command, "the program and its arguments, after --")->required();

  auto* ps = on(app.add_subcommand("ps", "List the sessions of a node"),
                [](const NodeAddress& node, const Options& o) {
                  return o.workers ? listWorkers(node, o.json) : listSessions(node, o.json);
                });
  ps->add_flag("--workers", options.workers, "list the worker processes instead, the waiting ones too, and their memory");
  addJson(ps, options);

  auto* inspected = on(app.add_subcommand("inspect", "Show the objects of a session, or what a snapshot holds"),
                       [](const NodeAddress& node, const Options& o) { return inspect(node, o.target, o.json); });
  inspected->add_option("target", options.target, "SESSION, or a snapshot's directory")->required();
  addJson(inspected, options);

  auto* suspend = on(
      app.add_subcommand("suspend", "Save a session's GPU to disk and free it; the program waits"),
      [](const NodeAddress& node, const Options& o) {
        return suspendSession(node, o.session, o.directory, o.timeoutSeconds, o.json);
      });
  suspend->add_option("session", options.session, "SESSION")->required();
  suspend->add_option("--to", options.directory, "a new directory for the snapshot")->required();
  suspend->add_option("--timeout", options.timeoutSeconds, "seconds to wait for the GPU before the program goes on")
      ->capture_default_str()
      ->check(CLI::Range(1u, 86400u));
  addJson(suspend, options);

  auto* resume = on(app.add_subcommand("resume", "Give a suspended program a GPU of this node and let it go on"),
                    [](const NodeAddress& node, const Options& o) { return resumeSession(node, o.directory, o.json); });
  resume->add_option("directory", options.directory, "the snapshot's directory")->required();
  addJson(resume, options);
}

int run(int argc, char** argv) {
  Options options;
  Command chosen;
  CLI::App app{"Run, suspend and resume CUDA programs on virtual GPUs.", "vgpuctl"};
  app.footer(examples);
  app.set_version_flag("--version", std::string("vgpuctl ") + productVersion);
  app.add_option("--node", options.node, "unix:DIR/vgpud.sock (default: VGPU_NODE, else your own run directory)");
  app.require_subcommand(1);
  app.fallthrough();
  addCommands(app, options, chosen);
  std::vector<std::string> arguments = markProgram({argv + 1, argv + argc});
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes a vector
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  LogToSpdlog log;
  return exitCodeOf("vgpuctl", [&] { return chosen(resolveNode(options.node), options); });
}

}  // namespace
}  // namespace vgpu::ctl

int main(int argc, char** argv) {
  vgpu::rememberIgnoredSignals();
  return vgpu::ctl::run(argc, argv);
}
