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
    "                                             a program that runs without vgpu, as NVIDIA's driver can\n"
    "  vgpuctl suspend app --process              its processes too; `resume` restores all, after a reboot, or elsewhere\n"
    "  vgpuctl clone app --count 3                start three copies of a program that was saved so\n"
    "  vgpuctl migrate app --to unix:/run/b/vgpud.sock\n"
    "                                             move it to another node while it runs\n"
    "  vgpuctl --node unix:/run/b/vgpud.sock resume /var/tmp/app-1\n"
    "                                             go on with another node's GPU\n"
    "  vgpuctl resume app --device-map 0=1        go on with this node's GPU 1 in the place of the program's GPU 0\n"
    "  vgpuctl --node tls:gpu-host:7000 run -- ./app\n"
    "                                             use a GPU elsewhere: vgpud --listen (docs/remote.md)\n"
    "  vgpuctl keys init                          make keys for that\n"
    "  vgpuctl --node any run --gpus 2 -- ./app   use the best of the nodes that `vgpuctl nodes` lists\n"
    "SESSION is an id, a name or a pid, as `vgpuctl ps` shows them; id:ID, name:NAME and pid:PID say which of these.\n"
    "Exit code: 0 done, 1 failed, 2 wrong usage; `run` returns the program's own (128 + n where signal n killed it).";

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
      "the program's processes too, with CRIU (docs/processes.md): their memory, threads and open files. All that\n"
      "`vgpuctl run` has started, and every session in it");
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
        ->add_option("--qmp", options.machine.monitor, "where QEMU listens for a QMP client: a socket's path, or tcp:HOST:PORT")
        ->required();
    command
        ->add_option("--timeout", options.machine.timeoutSeconds,
                     "seconds to wait for a GPU, or for the machine, before it is given up")
        ->capture_default_str()
        ->check(CLI::Range(1u, 86400u));
    command->add_flag("--json", options.machine.json, "print JSON, for scripts");
    return command;
  };
  auto addSessions = [&](CLI::App* command) {
    command->add_option("--vm", options.machine.machine, "its name, if that is to be checked");
    command->add_option("--guest", options.machine.guest,
                        "its name at `vgpud --guest`, if its programs share memory with the host (default: the node's only one, "
                        "or that of the monitor)");
    command->add_option("--session", options.machine.sessions,
                        "a session's id or name, several times for several (default: all whose programs are elsewhere)");
  };
  auto* follow = add("follow", "Wait for its live migration, and have the sessions go along", followMachine);
  addSessions(follow);
  follow->add_option("--to", options.machine.target, "the node, as --node takes it")->required();
  follow->add_option("--uri", options.machine.uri,
                     "begin the migration to there, as QEMU's migrate takes it, and do not wait for one");
  follow->add_flag("--stay", options.machine.stays, "after a migration that has failed, wait for the next one");
  auto* libvirt = follow->add_flag("--libvirt", options.machine.isLibvirts,
                                   "libvirt has the machine, and lets its migrations go on itself: virsh says what it does");
  auto* saves = follow
                    ->add_option("--saves", options.machine.saves,
                                 "a folder for the sessions of a machine that libvirt saves (default: it is kept from that)")
                    ->needs(libvirt);
  follow
      ->add_flag("--restored", options.machine.restores,
                 "libvirt restores the machine now: prints `ready` when it may, and all else to standard error")
      ->needs(saves);
  follow
      ->add_option("--downtime", options.machine.downtimeMilliseconds,
                   "milliseconds that each program may be held by its session")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  auto* save = add("save", "Suspend the sessions to a folder, save the machine there too, and end it", saveMachine);
  addSessions(save);
  save->add_option("folder", options.machine.target, "a new one; the machine's own file in it is `machine`")->required();
  save->add_option("--uri", options.machine.uri,
                   "where the machine is saved, as QEMU's migrate takes it (default: into the folder)");
  auto* restore =
      add("restore", "Load a machine that was saved, on this host or another one, and resume its sessions", restoreMachine);
  restore->add_option("folder", options.machine.target, "that `save` has made, or a copy of it")->required();
  restore->add_option("--guest", options.machine.guest, "its name at `vgpud --guest` here, if that is another one");
  restore->add_option("--uri", options.machine.uri,
                      "where the machine is, as QEMU's migrate-incoming takes it (default: in the folder)");
  auto* hook = machine->add_subcommand(
      "hook", "What libvirt's hook for QEMU does: /etc/libvirt/hooks/qemu calls it with its own arguments");
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
                  "how many GPUs it needs: a node that has fewer is refused, or not taken by --node any")
      ->capture_default_str()
      ->check(CLI::Range(1u, 64u));
  run->add_option("--name", options.run.name, "the session's name (default: the program's file name)");
  run->add_option("command", options.run.command, "the program and its arguments, after --")->required();

  auto* ps = on(app.add_subcommand("ps", "List the sessions of a node"),
                [](const NodeAddress& node, const Options& o) {
                  return o.workers ? listWorkers(node, o.json) : listSessions(node, o.json);
                });
  ps->add_flag("--workers", options.workers, "list the worker processes instead, the waiting ones too, and their memory");
  addJson(ps, options);

  auto* nodes = on(app.add_subcommand("nodes", "List the nodes of ~/.config/vgpu/nodes (VGPU_NODES), and what they have"),
                   [](const NodeAddress&, const Options& o) { return listNodes(o.seconds, o.json); });
  nodes->add_option("--timeout", options.seconds, "seconds to wait for a node")
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
                      "store. A directory of that name is ./memory");
  suspend->add_option("--name", options.suspend.name, "the snapshot's name in the store");
  auto* background = suspend->add_flag(
      "--background", options.suspend.inBackground,
      "to pinned memory first, and then to your store, or the directory, while you go on: `vgpuctl snapshots ls`, or\n"
      "`inspect DIRECTORY`, says when it is on disk. If the node's vgpud is killed before that, the session is lost");
  addProcess(suspend, options)->excludes(background);
  suspend->add_option("--timeout", options.suspend.timeoutSeconds, "seconds to wait for the GPU before the program goes on")
      ->capture_default_str()
      ->check(CLI::Range(1u, 86400u));
  suspend->add_flag("--json", options.suspend.json, "print JSON, for scripts");
  auto* native = suspend->add_flag(
      "--native", options.suspend.isNative,
      "SESSION is a process id, of a program that runs on a GPU without vgpu: NVIDIA's driver and CRIU save it, with\n"
      "all its children, and its guarantees are NVIDIA's (docs/processes.md). With --to DIRECTORY");
  native->excludes(background);
  suspend->callback([&options, &chosen] {
    if (options.suspend.isNative) {
      if (options.suspend.directory.empty() || options.suspend.directory == inMemory || !options.suspend.name.empty())
        throw CLI::ValidationError("--native", "a native program is saved to a directory: give --to DIRECTORY");
      if (options.suspend.withProcess) throw CLI::ValidationError("--native", "it saves the process anyway: leave out --process");
      chosen = [](const NodeAddress&, const Options& o) { return suspendNative(o.suspend); };
      return;
    }
    if (!options.suspend.name.empty() && !options.suspend.directory.empty() && options.suspend.directory != inMemory)
      throw CLI::ValidationError("--name", "a snapshot in a directory has no other name");
    if (options.suspend.withProcess && options.suspend.directory == inMemory)
      throw CLI::ValidationError("--process", "a process is saved to your store or a directory");
    if (options.suspend.inBackground && options.suspend.directory == inMemory)
      throw CLI::ValidationError("--background", "it is to your store or a directory; --to memory stays in memory");
    chosen = [](const NodeAddress& node, const Options& o) { return suspendSession(node, o.suspend); };
  });

  auto* snapshot = on(app.add_subcommand("snapshot", "Save a session's GPU; the program goes on"),
                      [](const NodeAddress& node, const Options& o) { return snapshotSession(node, o.suspend); });
  snapshot->add_option("session", options.suspend.session, "SESSION")->required();
  auto* to = snapshot->add_option("--to", options.suspend.directory, "a new directory for it (default: your store of snapshots)");
  to->check([](const std::string& directory) {
    return directory != inMemory
               ? ""
               : "a program that goes on has its snapshot in your store or a directory, and memory is neither: leave --to out, "
                 "or name a directory (one of that name is ./memory)";
  });
  snapshot->add_option("--name", options.suspend.name, "its name in the store")->excludes(to);
  addProcess(snapshot, options);
  snapshot->add_option("--timeout", options.suspend.timeoutSeconds, "seconds to wait for the GPU before it is given up")
      ->capture_default_str()
      ->check(CLI::Range(1u, 86400u));
  snapshot->add_flag("--json", options.suspend.json, "print JSON, for scripts");

  auto* explain = on(app.add_subcommand("explain", "Say what would refuse or delay a suspend of a session now"),
                     [](const NodeAddress& node, const Options& o) { return explainSession(node, o.suspend.session, o.json); });
  explain->add_option("session", options.suspend.session, "SESSION")->required();
  addJson(explain, options);

  auto* migrate = on(app.add_subcommand("migrate", "Move a session to another node; the program goes on"),
                     [](const NodeAddress& node, const Options& o) { return migrateSession(node, o.migrate); });
  migrate->add_option("session", options.migrate.session, "SESSION")->required();
  migrate->add_option("--to", options.migrate.target, "the node, as --node takes it")->required();
  migrate->add_option("--downtime", options.migrate.downtimeMilliseconds,
                      "milliseconds that the program may be held; if its memory changes too fast for that, it is held for longer")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  migrate->add_option("--timeout", options.migrate.timeoutSeconds, "seconds to wait for the GPU before it is given up")
      ->capture_default_str()
      ->check(CLI::Range(1u, 86400u));
  migrate->add_flag("--json", options.migrate.json, "print JSON, for scripts");

  auto* evacuate = on(app.add_subcommand("evacuate", "Move all sessions of a node to other nodes; their programs go on"),
                      [](const NodeAddress& node, const Options& o) {
                        return evacuateNode(o.target.empty() ? node : resolveNode(o.target), o.evacuate);
                      });
  evacuate->add_option("node", options.target, "which node (default: that of --node)");
  evacuate->add_option("--to", options.evacuate.target, "where they go (default: the nodes that `vgpuctl nodes` lists)");
  evacuate->add_option("--downtime", options.evacuate.downtimeMilliseconds, "milliseconds that each program may be held")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  evacuate->add_option("--timeout", options.evacuate.timeoutSeconds, "seconds to wait for the GPU before one stays")
      ->capture_default_str()
      ->check(CLI::Range(1u, 86400u));
  evacuate->add_flag("--json", options.evacuate.json, "print JSON, for scripts");

  auto* resume = on(app.add_subcommand("resume", "Give a suspended program a GPU of this node and let it go on"),
                    [](const NodeAddress& node, const Options& o) { return resumeSession(node, o.resume); });
  resume->add_option("snapshot", options.resume.snapshot, "the snapshot's directory, or its name in the store")->required();
  resume->add_option(
      "--device-map", options.resume.devices,
      "which GPU of the node becomes which of the program's, as 0=1,1=0; several can be one (0=0,1=0). Those that\n"
      "are not named become the ones of their number");
  resume->add_flag(
      "--wait", options.resume.awaits,
      "if the program's process is restored: until it has ended, and return its exit code (default: return when it goes on)");
  resume->add_flag("--json", options.resume.json, "print JSON, for scripts");

  auto* clone =
      on(app.add_subcommand("clone", "Start copies of a program that was saved with its processes, each with a GPU of this node"),
         [](const NodeAddress& node, const Options& o) { return cloneSnapshot(node, o.clone); });
  clone->add_option("snapshot", options.clone.snapshot, "the snapshot's directory, or its name in the store")->required();
  clone->add_option("--count", options.clone.count, "how many")->capture_default_str()->check(CLI::Range(1u, 64u));
  clone->add_option("--device-map", options.clone.devices, "of each copy, as for `resume`");

  auto* attach = on(app.add_subcommand("attach", "A virtual machine goes on whose memory was saved: its sessions follow it"),
                    [](const NodeAddress& node, const Options& o) { return attachGuest(node, o.name); });
  attach->add_option("guest", options.name, "its name, as vgpud --guest has it")->required();
  auto* keys = app.add_subcommand("keys", "Make and show the keys of tls: connections (init, issue, show)");
  keys->prefix_command()->fallthrough(false)->set_help_flag("");  // vgpu-relay prints its help, too
  on(keys, [keys](const NodeAddress&, const Options&) { return manageKeys(keys->remaining()); });

  addMachineCommands(app, options, chosen);
  auto* snapshots = app.add_subcommand("snapshots", "What your store of snapshots has (VGPU_STORE says where it is)");
  snapshots->require_subcommand(1);
  auto* list = on(snapshots->add_subcommand("ls", "List them"), [](const NodeAddress&, const Options& o) { return listSnapshots(o.json); });
  addJson(list, options);
  auto* show = on(snapshots->add_subcommand("show", "Show what one holds"), [](const NodeAddress& node, const Options& o) {
    return inspect(node, ChunkStore::directoryOf(snapshotStore(), o.target), o.json);
  });
  show->add_option("snapshot", options.target, "its name")->required();
  addJson(show, options);
  auto* remove = on(snapshots->add_subcommand("rm", "Remove one"),
                    [](const NodeAddress&, const Options& o) { return removeSnapshot(o.target, o.force); });
  remove->add_option("snapshot", options.target, "its name")->required();
  remove->add_flag("--force", options.force, "also if it is the latest of a session whose program is there");
  auto* verify = on(snapshots->add_subcommand("verify", "Read all that they need, and compare it with its digests"),
                    [](const NodeAddress&, const Options& o) { return verifySnapshots(o.snapshots); });
  verify->add_option("snapshots", options.snapshots, "their names, or directories with a / in their paths (default: all of the store)");
  auto* collect = on(snapshots->add_subcommand("gc", "Free what no snapshot needs"),
                     [](const NodeAddress&, const Options& o) { return collectSnapshots(o.json); });
  addJson(collect, options);
  auto* exported = on(snapshots->add_subcommand("export", "Write one, with all that it needs, into one file"),
                      [](const NodeAddress&, const Options& o) { return exportSnapshot(o.name, o.target); });
  exported->add_option("snapshot", options.name, "its name")->required();
  exported->add_option("file", options.target, "a new file, or - for standard output")->required();
  auto* imported = on(snapshots->add_subcommand("import", "Put one from such a file into the store"),
                      [](const NodeAddress&, const Options& o) { return importSnapshot(o.target, o.name, o.json); });
  imported->add_option("file", options.target, "the file, or - for standard input")->required();
  imported->add_option("name", options.name, "its name here (default: its session's, with a number if that is taken)");
  addJson(imported, options);
}

int run(int argc, char** argv) {
  Options options;
  Command chosen;
  CLI::App app{"Run, suspend and resume CUDA programs on virtual GPUs.", "vgpuctl"};
  app.footer(examples);
  app.set_version_flag("--version", std::string("vgpuctl ") + productVersion);
  app.add_option("--node", options.node,
                 "unix:DIR/vgpud.sock, or where a vgpud listens: tls:HOST:PORT, tcp:HOST:PORT or vsock:CID:PORT,\n"
                 "NAME of a node in ~/.config/vgpu/nodes, or, of `run`, any: the best of those\n"
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
