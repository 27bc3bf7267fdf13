#include "tools/vgpuctl/machine-folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/common/new-file.h"
#include "tools/vgpuctl/operation.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/sizes.h"
#include "vgpu/snapshot/file-sum.h"
#include "vgpu/snapshot/snapshot-reader.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr int version = 2;
constexpr const char* listName = "sessions.json";
constexpr const char* machineName = "machine";

// Quoted for the shell, because QEMU's `migrate` takes a shell command.
std::string quoted(const std::string& path) {
  std::string made = "'";
  for (char c : path) made += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return made + "'";
}

json describe(const MachineSession& session) {
  json described = {{"session", session.id}, {"name", session.name}, {"program", session.program}, {"pid", session.pid}};
  if (session.sharesMemory()) {
    described["guest"] = session.guest;
    described["slot"] = session.slot;
    described["claim"] = session.claim;
    described["fileBytes"] = session.fileBytes;
  }
  return described;
}

// Whether it is safe as a name in the folder.
bool isId(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz") == std::string::npos;
}

MachineSession sessionOf(const json& described) {
  MachineSession session{.id = described.at("session"),
                         .name = described.at("name"),
                         .program = described.at("program"),
                         .pid = described.at("pid")};
  if (!isId(session.id)) throw std::out_of_range("a session has an invalid id");
  if (described.contains("guest")) {
    session.guest = described.at("guest");
    session.slot = described.at("slot");
    session.claim = described.at("claim");
    session.fileBytes = described.at("fileBytes");
  }
  return session;
}

}  // namespace

MachineFolder::MachineFolder(const std::string& path) : folder(absolute(path)) {}

void MachineFolder::make() const {
  if (mkdir(folder.c_str(), 0700) != 0)
    fail("cannot make the folder " + folder + " for the sessions: " + std::string(strerror(errno)));
}

void MachineFolder::remove() const noexcept {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

void MachineFolder::complete(const std::string& machine, const std::vector<MachineSession>& sessions) const {
  json list{{"version", version}, {"machine", machine}, {"sessions", json::array()}};
  for (auto& session : sessions) list["sessions"].push_back(describe(session));
  if (const std::string path = folder + "/" + machineName; fs::exists(path)) {
    const auto sum = snapshot::sumOnDisk(path);
    list["memory"] = {{"bytes", sum.bytes}, {"xxh3", sum.checksum}};
  }
  const std::string path = folder + "/" + listName;
  const std::string text = list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  NewFile file(path);
  if (write(file.fd(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    fail(path + " cannot be written: " + strerror(errno));
  file.publish();
  const std::string above = fs::path(folder).parent_path();
  kj::AutoCloseFd parent(open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.get() < 0 || fsync(parent) != 0) fail(above + " cannot be synced to disk: " + strerror(errno));
}

json MachineFolder::list() const {
  if (!fs::is_directory(folder)) fail("there is no folder " + folder + ": `machine save` makes it");
  const std::string path = folder + "/" + listName;
  std::ifstream file(path);
  if (!file) fail("there is no " + path + ": saving the machine did not complete, or the folder was not copied completely");
  json all = json::parse(file, nullptr, false);
  if (!all.is_object() || all.value("version", 0) != version)
    fail(fmt::format("{} is not a list of sessions of version {}: use the vgpu that saved the machine", path, version));
  return all;
}

void MachineFolder::isDamaged(const std::exception& error) const {
  fail(folder + "/" + listName + " is damaged: " + error.what());
}

std::vector<MachineSession> MachineFolder::sessions() const {
  const json all = list();
  std::vector<MachineSession> sessions;
  try {
    for (const json& described : all.at("sessions")) sessions.push_back(sessionOf(described));
  } catch (const std::exception& error) {
    isDamaged(error);
  }
  return sessions;
}

void MachineFolder::verifyMemory() const {
  const json all = list();
  if (!all.contains("memory"))
    fail("the machine's memory is not in " + folder + ": name the place to which it was saved with --uri");
  snapshot::FileSum sum;
  try {
    sum = {all["memory"].at("bytes"), all["memory"].at("xxh3")};
  } catch (const std::exception& error) {
    isDamaged(error);
  }
  snapshot::FileReader file = snapshot::SnapshotReader(folder).open(machineName, sum);
  std::vector<std::byte> piece(MiB);
  while (file.left() > 0) file.read(std::span(piece).first(std::min<uint64_t>(file.left(), piece.size())));
  file.finish();
}

// Passes QEMU an open file: libvirt runs QEMU as another user, and ends it if it executes a shell (-sandbox spawn=deny).
std::string MachineFolder::writing(MachineMonitor& monitor) const {
  const std::string path = folder + "/" + machineName;
  kj::AutoCloseFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.get() < 0) fail(path + " cannot be made: " + strerror(errno));
  return monitor.giveFile(machineName, file) ? std::string("fd:") + machineName : "exec:cat > " + quoted(path);
}

std::string MachineFolder::reading(MachineMonitor& monitor) const {
  const std::string path = folder + "/" + machineName;
  kj::AutoCloseFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail(path + " cannot be read: " + strerror(errno));
  return monitor.giveFile(machineName, file) ? std::string("fd:") + machineName : "exec:cat " + quoted(path);
}

}  // namespace vgpu::ctl
