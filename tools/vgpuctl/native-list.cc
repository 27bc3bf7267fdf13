#include "tools/vgpuctl/native-list.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tools/common/new-file.h"
#include "vgpu/base/fail.h"

namespace vgpu::ctl {
namespace {

using nlohmann::json;

constexpr uintmax_t mostBytes = 1 << 20;
constexpr const char *listFile = "native.json", *heldFile = "native-held.json";

std::string heldPathIn(const std::string& directory) { return directory + "/" + heldFile; }

void writeJson(const std::string& directory, const char* name, const json& text) {
  NewFile file(directory + "/" + name);
  std::string bytes = text.dump(1) + "\n";
  kj::FdOutputStream(file.fd()).write(bytes.data(), bytes.size());
  file.publish();
}

// One of the two files; an invalid field is refused by its name.
class NativeFile {
 public:
  NativeFile(const std::string& directory, const char* name, const char* format, uint64_t version)
      : directory(directory), name(name) {
    const std::string path = directory + "/" + name;
    std::error_code error;
    require(std::filesystem::is_regular_file(std::filesystem::symlink_status(path, error)), "it is not a regular file");
    require(std::filesystem::file_size(path, error) <= mostBytes && !error, "it is too large");
    std::ifstream file(path, std::ios::binary);
    text = json::parse(std::string(std::istreambuf_iterator<char>(file), {}), nullptr, false);
    require(text.is_object() && text.value("format", json()) == format, "it does not describe a native program");
    const json found = text.value("version", json());
    require(found == version, fmt::format("format version {}, and this build reads version {}", found.dump(), version));
  }

  void require(bool holds, const std::string& check) const {
    if (!holds) fail(fmt::format("file {} of {}: {}", name, directory, check));
  }
  json field(const char* key) const { return text.value(key, json()); }
  uint64_t number(const json& object, const char* key) const {
    const json value = object.is_object() ? object.value(key, json()) : json();
    require(value.is_number_unsigned(), fmt::format("field {} is invalid", key));
    return value.get<uint64_t>();
  }
  uint64_t number(const char* key) const { return number(text, key); }
  int id(const json& value, const char* key) const {
    require(value.is_number_unsigned() && value.get<uint64_t>() - 1 < INT32_MAX, fmt::format("field {} is invalid", key));
    return value.get<int>();
  }
  json users() const {
    json found = field("users");
    require(found.is_array() && !found.empty(), "field users is invalid");
    return found;
  }
  HeldProcess process(const json& value, const char* key) const {
    require(value.is_object(), fmt::format("field {} is invalid", key));
    return {id(value.value("pid", json()), key), number(value, "start")};
  }

 private:
  const std::string& directory;
  const char* name;
  json text;
};

bool isIn(const std::string& directory, const char* name) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(directory + "/" + name, error));
}

json jsonOf(const HeldProcess& process) { return {{"pid", process.pid}, {"start", process.start}}; }

}  // namespace

void writeNativeList(const std::string& directory, const NativeList& list) {
  writeJson(directory, listFile,
            {{"format", "vgpu-native"},
             {"version", nativeListVersion},
             {"driver", list.driver},
             {"users", list.users},
             {"list", {{"bytes", list.process.list.bytes}, {"xxh3", list.process.list.checksum}}},
             {"imageBytes", list.process.imageBytes}});
}

std::optional<NativeList> readNativeList(const std::string& directory) {
  if (!isIn(directory, listFile)) return std::nullopt;
  NativeFile file(directory, listFile, "vgpu-native", nativeListVersion);
  NativeList list;
  list.driver = static_cast<int>(file.number("driver"));
  for (auto& user : file.users()) list.users.push_back(file.id(user, "users"));
  const json sum = file.field("list");
  list.process.list.bytes = file.number(sum, "bytes");
  const json checksum = sum.value("xxh3", json());
  file.require(checksum.is_string(), "field xxh3 is invalid");
  list.process.list.checksum = checksum.get<std::string>();
  list.process.imageBytes = file.number("imageBytes");
  return list;
}

void writeNativeHeld(const std::string& directory, const NativeHeld& held) {
  json users = json::array();
  for (auto& user : held.users) users.push_back(jsonOf(user));
  writeJson(directory, heldFile,
            {{"format", "vgpu-native-held"}, {"version", nativeHeldVersion}, {"root", jsonOf(held.root)}, {"users", users}});
}

std::optional<NativeHeld> readNativeHeld(const std::string& directory) {
  if (!isIn(directory, heldFile)) return std::nullopt;
  NativeFile file(directory, heldFile, "vgpu-native-held", nativeHeldVersion);
  NativeHeld held{file.process(file.field("root"), "root"), {}};
  for (auto& user : file.users()) held.users.push_back(file.process(user, "users"));
  return held;
}

kj::AutoCloseFd lockNativeHeld(const std::string& directory, bool inherited) {
  kj::AutoCloseFd file(open(heldPathIn(directory).c_str(), O_RDONLY | O_NOFOLLOW | (inherited ? 0 : O_CLOEXEC)));
  if (file.get() < 0) fail(fmt::format("cannot open {}: {}", heldPathIn(directory), strerror(errno)));
  if (flock(file, LOCK_EX | LOCK_NB) != 0)
    fail(fmt::format("a suspend to {} is in progress, or its CRIU still runs: wait until it has ended", directory));
  return file;
}

void removeNativeHeld(const std::string& directory) {
  if (unlink(heldPathIn(directory).c_str()) != 0)
    fail(fmt::format("cannot remove {}: {}", heldPathIn(directory), strerror(errno)));
}

}  // namespace vgpu::ctl
