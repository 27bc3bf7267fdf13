#include "vgpu/snapshot/process-part.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/io.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "vgpu/base/fail.h"
#include "vgpu/base/sizes.h"
#include "vgpu/snapshot/file-sum.h"
#include "vgpu/snapshot/replace-manifest.h"

namespace vgpu::snapshot {

namespace {

using Json = nlohmann::json;
constexpr uint64_t mostListBytes = 16 * MiB;

// Refuses a value of the wrong type, with the name of the file.
class List {
 public:
  List(const SnapshotReader& folder, const std::vector<std::byte>& bytes) : folder(folder) {
    json = Json::parse(bytes.begin(), bytes.end(), nullptr, false);
    require(json.is_object() && json.value("format", Json()) == "vgpu-process", "it does not describe a process");
    require(number(json, "version") == processPartVersion,
            fmt::format("format version {}, and this build reads version {}", number(json, "version"), processPartVersion));
  }

  void require(bool holds, const std::string& check) const {
    if (!holds) folder.refuse(processList, check);
  }
  const Json& in(const Json& object, const char* name) const {
    require(object.is_object() && object.contains(name), fmt::format("field {} is missing", name));
    return object[name];
  }
  uint64_t number(const Json& object, const char* name) const {
    auto& value = in(object, name);
    require(value.is_number_unsigned(), fmt::format("field {} is invalid", name));
    return value.get<uint64_t>();
  }
  int id(const Json& value, const char* name) const {
    require(value.is_number_unsigned() && value.get<uint64_t>() <= INT32_MAX, fmt::format("field {} is invalid", name));
    return value.get<int>();
  }
  std::string text(const Json& object, const char* name) const {
    auto& value = in(object, name);
    require(value.is_string(), fmt::format("field {} is invalid", name));
    return value.get<std::string>();
  }

  Json json;

 private:
  const SnapshotReader& folder;
};

// The form that a daemon generates: a plain folder name.
bool isSessionName(const std::string& name) {
  return !name.empty() &&
         std::ranges::all_of(name, [](unsigned char letter) { return std::islower(letter) || std::isdigit(letter); });
}

// The plain name of an image file, which CRIU finds in its own folder.
bool isImageName(const std::string& name) {
  return name.ends_with(".img") && name.find('/') == name.npos && !name.starts_with('.');
}

[[noreturn]] void cannot(const char* doing, const std::string& path) {
  fail(fmt::format("cannot {} {}: {}", doing, path, strerror(errno)));
}

bool readAt(int file, uint64_t at, void* out, size_t bytes) {
  return pread(file, out, bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
}

// From the NT_GNU_BUILD_ID note in a PT_NOTE segment. Empty if there is none.
std::string buildIdIn(int file, const Elf64_Phdr& segment) {
  constexpr uint64_t mostBytes = 64 * KiB;
  std::vector<unsigned char> notes(std::min<uint64_t>(segment.p_filesz, mostBytes));
  if (!readAt(file, segment.p_offset, notes.data(), notes.size())) return "";
  for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof note);
    size_t name = at + sizeof note, value = name + (note.n_namesz + 3) / 4 * 4, end = value + note.n_descsz;
    if (value < name || end < value || end > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes.data() + name, "GNU", 4) == 0) {
      std::string text;
      for (size_t i = value; i < end; ++i) text += fmt::format("{:02x}", notes[i]);
      return text;
    }
    at = (end + 3) / 4 * 4;
  }
  return "";
}

std::string buildIdOf(int file) {
  Elf64_Ehdr header;
  if (!readAt(file, 0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
    return "";
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!readAt(file, header.e_phoff + i * sizeof segment, &segment, sizeof segment)) return "";
    if (segment.p_type != PT_NOTE) continue;
    if (std::string id = buildIdIn(file, segment); !id.empty()) return id;
  }
  return "";
}

}  // namespace

std::string processFolderOf(const std::string& directory) { return directory + "/" + processFolder; }

std::string sessionFolderOf(const std::string& directory, const std::string& session) {
  return fmt::format("{}/{}/{}", directory, sessionsFolder, session);
}

std::vector<std::string> sessionsIn(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory + "/" + sessionsFolder, error), end; !error && entry != end;
       entry.increment(error))
    if (std::string name = entry->path().filename(); isSessionName(name) && exists(entry->path() / manifestFile))
      names.push_back(name);
  std::ranges::sort(names);
  return names;
}

SavedSession describeSession(const std::string& directory, const std::string& session, int pid) {
  std::string path = sessionFolderOf(directory, session) + "/" + manifestFile;
  return {session, pid, sumOf(openPlainFile(path), path)};
}

void verifySessions(const std::string& directory, const ProcessPart& part) {
  for (auto& one : part.sessions)
    SnapshotReader(sessionFolderOf(directory, one.session)).readWhole(manifestFile, one.manifest, maxManifestBytes);
}

std::string encodeProcessPart(const ProcessPart& part) {
  Json json{{"format", "vgpu-process"}, {"version", processPartVersion}, {"criu", part.criu},        {"pid", part.pid},
            {"threads", part.threads},  {"stopped", part.stopped},       {"shellJob", part.shellJob}};
  json["processes"] = Json::array();
  for (auto& process : part.processes) json["processes"].push_back({{"pid", process.pid}, {"name", process.name}});
  json["sessions"] = Json::array();
  for (auto& one : part.sessions)
    json["sessions"].push_back(
        {{"session", one.session}, {"pid", one.pid}, {"bytes", one.manifest.bytes}, {"xxh3", one.manifest.checksum}});
  json["images"] = Json::object();
  for (auto& [name, sum] : part.images) json["images"][name] = {{"bytes", sum.bytes}, {"xxh3", sum.checksum}};
  json["mapped"] = Json::array();
  for (auto& file : part.mapped)
    json["mapped"].push_back({{"path", file.path}, {"bytes", file.bytes}, {"identity", file.identity}});
  json["pipes"] = Json::array();
  for (auto& pipe : part.pipes) json["pipes"].push_back({{"descriptor", pipe.descriptor}, {"name", pipe.name}});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

ProcessPart readProcessPart(const std::string& directory, const ProcessSum& sum) {
  SnapshotReader folder(processFolderOf(directory));
  List list(folder, folder.readWhole(processList, sum.list, mostListBytes));
  ProcessPart part;
  part.criu = list.text(list.json, "criu");
  part.pid = list.id(list.in(list.json, "pid"), "pid");
  for (auto& process : list.in(list.json, "processes"))
    part.processes.push_back({list.id(list.in(process, "pid"), "pid"), list.text(process, "name")});
  list.require(!part.processes.empty() && part.processes.front().pid == part.pid, "processes: the first is not the one of field pid");
  for (auto& thread : list.in(list.json, "threads")) part.threads.push_back(list.id(thread, "threads"));
  for (auto& process : list.in(list.json, "stopped")) part.stopped.push_back(list.id(process, "stopped"));
  part.shellJob = list.in(list.json, "shellJob") == true;
  for (auto& [name, image] : list.in(list.json, "images").items()) {
    list.require(isImageName(name), "images: " + name + " is no name of one");
    part.images[name] = {list.number(image, "bytes"), list.text(image, "xxh3")};
  }
  for (auto& file : list.in(list.json, "mapped"))
    part.mapped.push_back({list.text(file, "path"), list.number(file, "bytes"), list.text(file, "identity")});
  for (auto& pipe : list.in(list.json, "pipes"))
    part.pipes.push_back({list.id(list.in(pipe, "descriptor"), "descriptor"), list.text(pipe, "name")});
  for (auto& one : list.in(list.json, "sessions")) {
    std::string name = list.text(one, "session");
    list.require(isSessionName(name), "sessions: " + name + " is no name of one");
    part.sessions.push_back({name, list.id(list.in(one, "pid"), "pid"), {list.number(one, "bytes"), list.text(one, "xxh3")}});
  }
  return part;
}

std::map<std::string, FileSum> sumImages(const std::string& folder) {
  std::map<std::string, FileSum> sums;
  for (auto& entry : std::filesystem::directory_iterator(folder)) {
    std::string name = entry.path().filename();
    if (!isImageName(name)) continue;
    sums[name] = sumOnDisk(entry.path());
  }
  return sums;
}

void verifyImages(const std::string& directory, const ProcessPart& part, const std::function<void(uint64_t)>& progress) {
  SnapshotReader(processFolderOf(directory)).compare(part.images, progress);
}

ProcessSum writeProcessList(const std::string& directory, const ProcessPart& part) {
  std::string folder = processFolderOf(directory), path = folder + "/" + processList, text = encodeProcessPart(part);
  if (text.size() > mostListBytes) fail("the process has too many mapped files and threads to be saved");
  kj::AutoCloseFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  kj::AutoCloseFd opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()) || fsync(file) != 0 ||
      opened.get() < 0 || fsync(opened) != 0)
    cannot("write", path);
  ProcessSum sums{{text.size(), checksumOf(std::as_bytes(std::span(text)))}, 0};
  for (auto& [name, sum] : part.images) sums.imageBytes += sum.bytes;
  return sums;
}

void addProcessPart(const std::string& directory, const ProcessPart& part) {
  const ProcessSum sum = writeProcessList(directory, part);
  Manifest manifest = readManifest(SnapshotReader(directory));
  manifest.process = sum;
  replaceManifest(directory, encodeManifest(manifest));
}

MappedFile describeMapped(const std::string& path, bool isShared) {
  kj::AutoCloseFd file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status;
  if (file.get() < 0 || fstat(file, &status) != 0) cannot("open", path);
  MappedFile described{path, static_cast<uint64_t>(status.st_size), ""};
  if (isShared || !S_ISREG(status.st_mode)) return described;
  if (std::string id = buildIdOf(file); !id.empty())
    described.identity = "build id " + id;
  else
    described.identity = "xxh3 " + sumOf(file, path).checksum;
  return described;
}

}  // namespace vgpu::snapshot
