// snapshots export and import: a snapshot as one file.
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "tools/common/new-file.h"
#include "tools/common/printable.h"
#include "tools/common/snapshot-store.h"
#include "tools/vgpuctl/commands.h"
#include "tools/vgpuctl/interruption.h"
#include "tools/vgpuctl/new-snapshot.h"
#include "tools/vgpuctl/progress-line.h"
#include "tools/vgpuctl/session-info.h"
#include "tools/vgpuctl/snapshot-info.h"
#include "tools/vgpuctl/stored-snapshots.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/snapshot/archive.h"
#include "vgpu/snapshot/process-part.h"

namespace vgpu::ctl {
namespace {

constexpr const char* standard = "-";  // standard input or output

// Shows the progress, and ends the operation when a signal arrives.
class Progress {
 public:
  Progress(const char* operation, const std::string& name) : operation(fmt::format("{} {}", operation, name)) {}

  snapshot::ArchiveProgress report() {
    return [this](uint64_t done, uint64_t all) {
      interruption.check();
      if (!line) line.emplace(operation, all);
      line->add(done - before);
      before = done;
    };
  }

 private:
  const std::string operation;
  Interruption interruption;
  std::optional<DoneLine> line;
  uint64_t before = 0;
};

}  // namespace

int exportSnapshot(const std::string& name, const std::string& file) {
  requireSoundStore(snapshotStore());
  ChunkStore store(snapshotStore());
  std::string directory = wholeSnapshot(store, name);
  if (snapshot::readHeader(snapshot::SnapshotReader(directory)).process)
    fail(fmt::format(
        "snapshot {} contains its program's process, which an archive cannot contain: suspend with --to DIRECTORY instead, and copy that "
        "directory",
        name));
  if (!snapshot::sessionsIn(directory).empty())
    fail(
        fmt::format("snapshot {} contains several sessions that share memory or events, and an archive can contain only one: suspend with "
                    "--to DIRECTORY instead, and copy that directory",
                    name));
  Progress progress("export", name);
  if (file == standard) {
    if (isatty(STDOUT_FILENO)) fail("standard output is a terminal; name a file, or send the output to a program");
    snapshot::writeArchive(store, directory, STDOUT_FILENO, "standard output", progress.report());
    return 0;
  }
  NewFile written(file);
  snapshot::writeArchive(store, directory, written.fd(), file, progress.report());
  faultPoint("export.written");
  written.publish();
  fmt::print("{} is exported to {}: {}\n", name, file, humanBytes(std::filesystem::file_size(file)));
  return 0;
}

int importSnapshot(const std::string& file, const std::string& name, bool asJson) {
  requireSoundStore(snapshotStore());
  ChunkStore store(snapshotStore());
  std::string source = file == standard ? "standard input" : file;
  Progress progress("import", source);
  kj::AutoCloseFd opened;
  if (file != standard) {
    opened = kj::AutoCloseFd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (opened.get() < 0) fail(fmt::format("cannot open {}: {}", file, strerror(errno)));
  }
  snapshot::ArchiveReader archive(file == standard ? STDIN_FILENO : opened.get(), source, progress.report());
  auto& manifest = archive.manifest();
  std::string wish = manifest.identity.name.empty() ? "imported" : manifest.identity.name;
  const NewSnapshot reserved = name.empty() ? NewSnapshot::like(store, wish) : NewSnapshot::called(store, name);
  const std::string& directory = reserved.path();
  auto imported = archive.importInto(store, directory);
  if (asJson)
    printJson({{"snapshot", nameOf(directory)},
               {"directory", directory},
               {"deviceBytes", manifest.deviceBytes},
               {"chunks", imported.chunks},
               {"storedBytes", imported.writtenBytes}});
  else
    fmt::print("{} is imported from {}: {} of device memory in {} chunks, of which {} were written\n", nameOf(directory),
               printable(source), humanBytes(manifest.deviceBytes), imported.chunks, humanBytes(imported.writtenBytes));
  return 0;
}

}  // namespace vgpu::ctl
