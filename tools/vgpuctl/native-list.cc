#include "tools/vgpuctl/native-list.h"

#include <errno.h>
#include <fmt/format.h>
#include <kj/io.h>

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

std::string pathIn(const std::string& directory) { return directory + "/native.json"; }

}  // namespace

void writeNativeList(const std::string& directory, const NativeList& list) {
  json text = {{"format", "vgpu-native"},
               {"version", nativeListVersion},
               {"driver", list.driver},
               {"users", list.users},
               {"list", {{"bytes", list.process.list.bytes}, {"xxh3", list.process.list.checksum}}},
               {"imageBytes", list.process.imageBytes}};
  NewFile file(pathIn(directory));
  std::string bytes = text.dump(1) + "\n";
  kj::FdOutputStream(file.fd()).write(bytes.data(), bytes.size());
  file.publish();
}

std::optional<NativeList> readNativeList(const std::string& directory) {
  const std::string path = pathIn(directory);
  auto require = [&](bool holds, const std::string& check) {
    if (!holds) fail(fmt::format("file native.json of {}: {}", directory, check));
  };
  std::error_code error;
  auto status = std::filesystem::symlink_status(path, error);
  if (!std::filesystem::exists(status)) return std::nullopt;
  require(std::filesystem::is_regular_file(status), "it is no plain file");
  require(std::filesystem::file_size(path, error) <= mostBytes && !error, "it is larger than any should be");
  std::ifstream file(path, std::ios::binary);
  json text = json::parse(std::string(std::istreambuf_iterator<char>(file), {}), nullptr, false);
  require(text.is_object() && text.value("format", json()) == "vgpu-native", "it describes no native program");
  const json version = text.value("version", json());
  require(version == nativeListVersion,
          fmt::format("format version {}, and this build reads version {}", version.dump(), nativeListVersion));
  NativeList list;
  auto number = [&](const json& object, const char* name) {
    const json value = object.is_object() ? object.value(name, json()) : json();
    require(value.is_number_unsigned(), fmt::format("field {} makes no sense", name));
    return value.get<uint64_t>();
  };
  list.driver = static_cast<int>(number(text, "driver"));
  const json users = text.value("users", json()), sum = text.value("list", json());
  require(users.is_array() && !users.empty(), "field users makes no sense");
  for (auto& user : users) {
    require(user.is_number_unsigned() && user.get<uint64_t>() <= INT32_MAX, "field users makes no sense");
    list.users.push_back(user.get<int>());
  }
  list.process.list.bytes = number(sum, "bytes");
  const json checksum = sum.value("xxh3", json());
  require(checksum.is_string(), "field xxh3 makes no sense");
  list.process.list.checksum = checksum.get<std::string>();
  list.process.imageBytes = number(text, "imageBytes");
  return list;
}

}  // namespace vgpu::ctl
