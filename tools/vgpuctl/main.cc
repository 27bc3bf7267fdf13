// vgpuctl: the command line for virtual GPUs.
#include <CLI/CLI.hpp>
#include <functional>

#include "tools/common/installation.h"
#include "tools/common/known-nodes.h"
#include "tools/common/reason.h"
#include "tools/common/snapshot-store.h"
#include "tools/common/spawn.h"
#include "tools/vgpuctl/arguments.h"
#include "tools/vgpuctl/commands.h"
#include "vgpu/store/chunk-store.h"

namespace vgpu::ctl {
namespace {

constexpr const char* examples =
    "Examples:\n"
    "  vgpuctl run -- ./app input.bin             run a CUDA program on a virtual GPU\n"
    "  vgpuctl ps                                 what runs on this node\n"
    "  vgpuctl suspend app                        free the GPU; the program waits, its memory is in your store\n"
    "  vgpuctl resume app                         give it a GPU again\n"
    "  vgpuctl suspend app --to /var/tmp/app-1    the same, into a directory that can be taken elsewhere\n"
    "  vgpuctl suspend app --to memory            into the node's pinned memory, until it is resumed\n"
    "  vgpuctl suspend app --background           into pinned memory now, and to your store in the background\n"
    "  vgpuctl suspend 4711 --native --to /var/tmp/app-2\n"
    "                                             a program that runs without vgpu, by NVIDIA's driver\n"
    "  vgpuctl suspend app --process              its processes too; `resume` restores all, after a reboot, or elsewhere\n"
    "  vgpuctl clone app --count 3                start three copies of a program that was saved with its processes\n"
    "  vgpuctl migrate app --to unix:/run/b/vgpud.sock\n"
    "                                             move it to another node while it runs\n"
    "  vgpuctl --node unix:/run/b/vgpud.sock resume /var/tmp/app-1\n"
    "                                             go on with another node's GPU\n"
    "  vgpuctl resume app --device-map 0=1        go on with this node's GPU 1 as the program's GPU 0\n"
    "  vgpuctl --node tls:gpu-host:7000 run -- ./app\n"
    "                                             use a GPU of another host: vgpud --listen (docs/remote.md)\n"
    "  vgpuctl keys init                          make the keys that tls: needs\n"
    "  vgpuctl --node any run --gpus 2 -- ./app   use the best of the nodes that `vgpuctl nodes` lists\n"
    "SESSION is an id, a name or a pid, as `vgpuctl ps` shows them; id:ID, name:NAME and pid:PID select one of these.\n"
    "Exit code: 0 done, 1 failed, 2 wrong usage; `run` returns the program's own (128 + n if signal n killed it).";

struct Options {
  std::string node, target, name;
  std::vector<std::string> snapshots;
  SuspendOptions suspend;
  MigrateOptions migrate;
  EvacuateOptions evacuate;
  MachineOptions machine;
  ResumeOptions resume;
  CloneOptions clone;
  unsigned seconds = 5;
  bool json = false, workers = false, force = false;
  bool takesAny = false;  // the command accepts --node any
  RunOptions run;
};

using Command = std::function<int(const NodeAddress&, const Options&)>;

void addJson(CLI::App* command, Options& options) {
  command->add_flag("--json", options.json, "print JSON, for scripts");
}

CLI::Option* addProcess(CLI::App* command, Options& options) {
  return command->add_flag(
      "--process", options.suspend.withProcess,
      "also the program's processes, with CRIU (docs/processes.md): their memory, threads and open files; all processes that\n"
      "`vgpuctl run` started, and all their sessions");
}

// Commands for a virtual machine with the sessions of its programs.
void addMachineCommands(CLI::App& app, Options& options, Command& chosen) {
  auto* machine = app.add_subcommand("machine", "Move a virtual machine, or save it, with the sessions of its programs");
  machine->require_subcommand(1);
  auto add = [&](const char* name, const char* what, int (*action)(const NodeAddress&, const MachineOptions&)) {
    auto* command = machine->add_subcommand(name, what);
    command->callback(
        [&chosen, action] { chosen = [action](const NodeAddress& node, const Options& o) { return action(node, o.machine); }; });
    command
        ->add_option("--qmp", options.machine.monitor, "QEMU's QMP socket: a path, or tcp:HOST:PORT")
        ->required();
    command
        ->add_option("--timeout", options.machine.timeoutSeconds,
                     "how many seconds to wait for a GPU, or for the machine, before giving up")
        ->capture_default_str()
        ->check(CLI::Range(1u, 86400u));
    command->add_flag("--json", options.machine.json, "print JSON, for scripts");
    return command;
  };
  auto addSessions = [&](CLI::App* command) {
    command->add_option("--vm", options.machine.machine, "the name that the machine must have");
    command->add_option("--guest", options.machine.guest,
                        "its name at `vgpud --guest`, if its programs share memory with the host (default: the node's only guest, or the "
                        "one with the name that QEMU reports)");
    command->add_option("--session", options.machine.sessions,
                        "a session's id or name; may be given several times (default: all sessions whose programs reach the node through a "
                        "network or the machine's memory)");
  };
  auto* follow = add("follow", "Wait for its live migration, and move the sessions along", followMachine);
  addSessions(follow);
  follow->add_option("--to", options.machine.target, "the node, as --node takes it")->required();
  follow->add_option("--uri", options.machine.uri,
                     "start the migration to this URI (as QEMU's migrate takes it) instead of waiting for one");
  follow->add_flag("--stay", options.machine.stays, "after a migration that has failed, wait for the next one");
  auto* libvirt = follow->add_flag("--libvirt", options.machine.isLibvirts,
                                   "libvirt manages the machine and completes its migrations itself; virsh reports what it does");
  auto* saves = follow
                    ->add_option("--saves", options.machine.saves,
                                 "a folder for the sessions of a machine that libvirt saves (default: such a save is prevented)")
                    ->needs(libvirt);
  follow
      ->add_flag("--restored", options.machine.restores,
                 "libvirt restores the machine now: print `ready` when it may continue, and everything else to standard error")
      ->needs(saves);
  follow
      ->add_option("--downtime", options.machine.downtimeMilliseconds,
                   "for how many milliseconds each program may be held")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  auto* save = add("save", "Suspend the sessions to a folder, save the machine to it too, and end the machine", saveMachine);
  addSessions(save);
  save->add_option("folder", options.machine.target, "a new folder; the machine's own file in it is `machine`")->required();
  save->add_option("--uri", options.machine.uri,
                   "where to save the machine, as QEMU's migrate takes it (default: into the folder)");
  auto* restore =
      add("restore", "Load a machine that was saved, on this host or another one, and resume its sessions", restoreMachine);
  restore->add_option("folder", options.machine.target, "a folder that `save` has made, or a copy of it")->required();
  restore->add_option("--guest", options.machine.guest, "its name at `vgpud --guest` here, if it differs");
  restore->add_option("--uri", options.machine.uri,
                      "where the machine is, as QEMU's migrate-incoming takes it (default: in the folder)");
  auto* hook = machine->add_subcommand(
      "hook", "libvirt's hook for QEMU: /etc/libvirt/hooks/qemu calls it with its own arguments");
  hook->prefix_command()->fallthrough(false);
  hook->callback(
      [&chosen, hook] { chosen = [hook](const NodeAddress&, const Options&) { return hookMachine(hook->remaining()); }; });
}

// Defines each command's options and action.
void addCommands(CLI::App& app, Options& options, Command& chosen) {
  auto on = [&](CLI::App* command, Command action) {
    command->callback([&chosen, action = std::move(action)] { chosen = action; });
    return command;
  };
  auto* run = on(app.add_subcommand("run", "Run a program on a virtual GPU"),
                 [](const NodeAddress& node, const Options& o) { return runProgram(node, o.run); });
  run->preparse_callback([&options](size_t) { options.takesAny = true; });
  run->add_option("--gpus", options.run.gpus,
                  "how many GPUs it needs: a node with fewer is refused, or not chosen by --node any")
      ->capture_default_str()
      ->check(CLI::Range(1u, 64u));
  run->add_option("--name", options.run.name, "the session's name (default: the program's file name)");
  run->add_option("command", options.run.command, "the program and its arguments, after --")->required();

  auto* ps = on(app.add_subcommand("ps", "List the sessions of a node"),
                [](const NodeAddress& node, const Options& o) {
                  return o.workers ? listWorkers(node, o.json) : listSessions(node, o.json);
                });
  ps->add_flag("--workers", options.workers, "list the worker processes instead, including those that wait "
                                             "for a program, and their memory");
  addJson(ps, options);

  auto* nodes = on(app.add_subcommand("nodes", "List the nodes of ~/.config/vgpu/nodes (VGPU_NODES), and what is free on each"),
                   [](const NodeAddress&, const Options& o) { return listNodes(o.seconds, o.json); });
  nodes->add_option("--timeout", options.seconds, "how many seconds to wait for a node")
      ->capture_default_str()
      ->check(CLI::Range(1u, 3600u));
  addJson(nodes, options);

  auto* inspected = on(app.add_subcommand("inspect", "Show the objects of a session, or what a snapshot holds"),
                       [](const NodeAddress& node, const Options& o) { return inspect(node, o.target, o.json); });
  inspected->add_option("target", options.target, "SESSION, or a snapshot's directory")->required();
  addJson(inspected, options);

  auto* suspend = app.add_subcommand("suspend", "Save a session's GPU and free it; the program waits");
  suspend->add_option("session", options.suspend.session, "SESSION")->required();
  suspend->add_option("--to", options.suspend.directory,
                      "a new directory for the snapshot (default: your store of snapshots), or memory: the node's pinned\n"
                      "memory (vgpud --pinned), as far as there is room, until the session is resumed; the rest goes to the\n"
                      "store. For a directory of that name write ./memory");
  suspend->add_option("--name", options.suspend.name, "the snapshot's name in the store");
  auto* background = suspend->add_flag(
      "--background", options.suspend.inBackground,
      "to pinned memory first, and then in the background to your store, or the directory: `vgpuctl snapshots ls`, or\n"
      "`inspect DIRECTORY`, shows when it is on disk. If the node's vgpud is killed before that, the session is lost");
  addProcess(suspend, options)->excludes(background);
  suspend->add_option("--timeout", options.suspend.timeoutSeconds, "how many seconds to wait for the GPU; then the program goes on")
      ->capture_default_str()
      ->check(CLI::Range(1u, 86400u));
  suspend->add_flag("--json", options.suspend.json, "print JSON, for scripts");
  auto* native = suspend->add_flag(
      "--native", options.suspend.isNative,
      "SESSION is the process id of a program that runs on a GPU without vgpu: NVIDIA's driver and CRIU save it with\n"
      "all its children, and only what NVIDIA guarantees holds (docs/processes.md). Needs --to DIRECTORY");
  native->excludes(background);
  suspend->callback([&options, &chosen] {
    if (options.suspend.isNative) {
      if (options.suspend.directory.empty() || options.suspend.directory == inMemory || !options.suspend.name.empty())
        throw CLI::ValidationError("--native", "a native program is saved to a directory: give --to DIRECTORY");
      if (options.suspend.withProcess)
        throw CLI::ValidationError("--native", "a native program is always saved with its process: leave out --process");
      chosen = [](const NodeAddress&, const Options& o) { return suspendNative(o.suspend); };
      return;
    }
    if (!options.suspend.name.empty() && !options.suspend.directory.empty() && options.suspend.directory != inMemory)
      throw CLI::ValidationError("--name", "a snapshot in a directory is named by the directory: leave out --name");
    if (options.suspend.withProcess && options.suspend.directory == inMemory)
      throw CLI::ValidationError("--process", "the process is saved to your store or a directory, not to memory");
    if (options.suspend.inBackground && options.suspend.directory == inMemory)
      throw CLI::ValidationError("--background", "the snapshot is written to your store or a directory, and with --to memory it stays in "
                                                 "memory: leave out one of them");
    chosen = [](const NodeAddress& node, const Options& o) { return suspendSession(node, o.suspend); };
  });

  auto* snapshot = on(app.add_subcommand("snapshot", "Save a session's GPU; the program goes on"),
                      [](const NodeAddress& node, const Options& o) { return snapshotSession(node, o.suspend); });
  snapshot->add_option("session", options.suspend.session, "SESSION")->required();
  auto* to = snapshot->add_option("--to", options.suspend.directory, "a new directory for it (default: your store of snapshots)");
  to->check([](const std::string& directory) {
    return directory != inMemory
               ? ""
               : "the snapshot of a program that goes on cannot be in memory: leave --to out for your store, or name a directory (for one "
                 "called memory write ./memory)";
  });
  snapshot->add_option("--name", options.suspend.name, "the snapshot's name in the store")->excludes(to);
  addProcess(snapshot, options);
  snapshot->add_option("--timeout", options.suspend.timeoutSeconds, "how many seconds to wait for the GPU before giving up")
      ->capture_default_str()
      ->check(CLI::Range(1u, 86400u));
  snapshot->add_flag("--json", options.suspend.json, "print JSON, for scripts");

  auto* explain = on(app.add_subcommand("explain", "Show what would refuse or delay a suspend of a session now"),
                     [](const NodeAddress& node, const Options& o) { return explainSession(node, o.suspend.session, o.json); });
  explain->add_option("session", options.suspend.session, "SESSION")->required();
  addJson(explain, options);

  auto* migrate = on(app.add_subcommand("migrate", "Move a session to another node; the program goes on"),
                     [](const NodeAddress& node, const Options& o) { return migrateSession(node, o.migrate); });
  migrate->add_option("session", options.migrate.session, "SESSION")->required();
  migrate->add_option("--to", options.migrate.target, "the node, as --node takes it")->required();
  migrate->add_option("--downtime", options.migrate.downtimeMilliseconds,
                      "for how many milliseconds the program may be held; if its memory changes too fast for that, it is held longer")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  migrate->add_option("--timeout", options.migrate.timeoutSeconds, "how many seconds to wait for the GPU before giving up")
      ->capture_default_str()
      ->check(CLI::Range(1u, 86400u));
  migrate->add_flag("--json", options.migrate.json, "print JSON, for scripts");

  auto* evacuate = on(app.add_subcommand("evacuate", "Move all sessions of a node to other nodes; their programs go on"),
                      [](const NodeAddress& node, const Options& o) {
                        return evacuateNode(o.target.empty() ? node : resolveNode(o.target), o.evacuate);
                      });
  evacuate->add_option("node", options.target, "the node to evacuate (default: that of --node)");
  evacuate->add_option("--to", options.evacuate.target, "the node to which they move (default: the nodes that `vgpuctl nodes` lists)");
  evacuate->add_option("--downtime", options.evacuate.downtimeMilliseconds, "milliseconds that each program may be held")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  evacuate->add_option("--timeout", options.evacuate.timeoutSeconds, "how many seconds to wait for the GPU before a session stays")
      ->capture_default_str()
      ->check(CLI::Range(1u, 86400u));
  evacuate->add_flag("--json", options.evacuate.json, "print JSON, for scripts");

  auto* resume = on(app.add_subcommand("resume", "Give a suspended program a GPU of this node and let it go on"),
                    [](const NodeAddress& node, const Options& o) { return resumeSession(node, o.resume); });
  resume->add_option("snapshot", options.resume.snapshot, "the snapshot's directory, or its name in the store")->required();
  resume->add_option(
      "--device-map", options.resume.devices,
      "PROGRAM'S GPU=NODE'S GPU, such as 0=1,1=0; several of the program's can become one (0=0,1=0). GPUs that are not\n"
      "named keep their numbers");
  resume->add_flag(
      "--wait", options.resume.awaits,
      "if the program's process is restored: wait until it has ended, and return its exit code (default: return when it goes on)");
  resume->add_flag("--json", options.resume.json, "print JSON, for scripts");

  auto* clone =
      on(app.add_subcommand("clone", "Start copies of a program that was saved with its processes, each with a GPU of this node"),
         [](const NodeAddress& node, const Options& o) { return cloneSnapshot(node, o.clone); });
  clone->add_option("snapshot", options.clone.snapshot, "the snapshot's directory, or its name in the store")->required();
  clone->add_option("--count", options.clone.count, "how many copies")->capture_default_str()->check(CLI::Range(1u, 64u));
  clone->add_option("--device-map", options.clone.devices, "for each copy, as for `resume`");

  auto* attach = on(app.add_subcommand("attach", "Let the sessions of a virtual machine go on after its memory was loaded again"),
                    [](const NodeAddress& node, const Options& o) { return attachGuest(node, o.name); });
  attach->add_option("guest", options.name, "the machine's name at `vgpud --guest`")->required();
  auto* keys = app.add_subcommand("keys", "Make and show the keys for tls: connections (init, issue, show)");
  keys->prefix_command()->fallthrough(false)->set_help_flag("");  // vgpu-relay prints its help, too
  on(keys, [keys](const NodeAddress&, const Options&) { return manageKeys(keys->remaining()); });

  addMachineCommands(app, options, chosen);
  auto* snapshots = app.add_subcommand("snapshots", "List and manage your store of snapshots (VGPU_STORE names its folder)");
  snapshots->require_subcommand(1);
  auto* list = on(snapshots->add_subcommand("ls", "List them"), [](const NodeAddress&, const Options& o) { return listSnapshots(o.json); });
  addJson(list, options);
  auto* show = on(snapshots->add_subcommand("show", "Show what a snapshot holds"), [](const NodeAddress& node, const Options& o) {
    return inspect(node, ChunkStore::directoryOf(snapshotStore(), o.target), o.json);
  });
  show->add_option("snapshot", options.target, "its name")->required();
  addJson(show, options);
  auto* remove = on(snapshots->add_subcommand("rm", "Remove a snapshot"),
                    [](const NodeAddress&, const Options& o) { return removeSnapshot(o.target, o.force); });
  remove->add_option("snapshot", options.target, "its name")->required();
  remove->add_flag("--force", options.force, "even if it is the latest snapshot of a session whose program still exists");
  auto* verify = on(snapshots->add_subcommand("verify", "Read all files and chunks of snapshots, and compare them with their digests"),
                    [](const NodeAddress&, const Options& o) { return verifySnapshots(o.snapshots); });
  verify->add_option("snapshots", options.snapshots, "their names, or directories, with a / in the path (default: all snapshots of the "
                                                     "store)");
  auto* collect = on(snapshots->add_subcommand("gc", "Free what no snapshot needs"),
                     [](const NodeAddress&, const Options& o) { return collectSnapshots(o.json); });
  addJson(collect, options);
  auto* exported = on(snapshots->add_subcommand("export", "Write a snapshot, with all that it needs, into one file"),
                      [](const NodeAddress&, const Options& o) { return exportSnapshot(o.name, o.target); });
  exported->add_option("snapshot", options.name, "its name")->required();
  exported->add_option("file", options.target, "a new file, or - for standard output")->required();
  auto* imported = on(snapshots->add_subcommand("import", "Put a snapshot from such a file into the store"),
                      [](const NodeAddress&, const Options& o) { return importSnapshot(o.target, o.name, o.json); });
  imported->add_option("file", options.target, "the file, or - for standard input")->required();
  imported->add_option("name", options.name, "its name in this store (default: its session's name, with a number if that is taken)");
  addJson(imported, options);
}

int run(int argc, char** argv) {
  Options options;
  Command chosen;
  CLI::App app{"Run, suspend and resume CUDA programs on virtual GPUs.", "vgpuctl"};
  app.footer(examples);
  app.set_version_flag("--version", std::string("vgpuctl ") + productVersion);
  app.add_option("--node", options.node,
                 "unix:DIR/vgpud.sock, the address on which a vgpud listens: tls:HOST:PORT, tcp:HOST:PORT or vsock:CID:PORT,\n"
                 "the NAME of a node in ~/.config/vgpu/nodes, or for `run` any: the best of those nodes\n"
                 "(default: VGPU_NODE, else your own run directory)");
  app.require_subcommand(1);
  app.fallthrough();
  addCommands(app, options, chosen);
  std::vector<std::string> arguments = markProgram({argv + 1, argv + argc});
  std::reverse(arguments.begin(), arguments.end());  // CLI11 expects a vector in reverse order
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  LogToSpdlog log;
  return exitCodeOf("vgpuctl", [&] {
    const bool isAny = options.takesAny && wantedNode(options.node) == anyNode;
    return chosen(isAny ? chooseNode(options.run.gpus) : resolveNode(options.node), options);
  });
}

}  // namespace
}  // namespace vgpu::ctl

int main(int argc, char** argv) {
  vgpu::rememberIgnoredSignals();
  return vgpu::ctl::run(argc, argv);
}
