#include "stub/emulator/driver/settings.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <thread>

#include "stub/emulator/driver/cuda-api.h"
#include "stub/emulator/ptx/run/interpreter.h"

namespace vgpu::emulator::api {
namespace {

constexpr const char* accepted =
    "VGPU_EMULATED takes devices=1..64, memory=BYTES|KiB|MiB|GiB, architecture=75..121, workers=1..1024, "
    "schedule=SEED, timeout=SECONDS, link=BYTES|KiB|MiB|GiB (a second), peer-link=BYTES|KiB|MiB|GiB (a second), "
    "check=uninitialized|races|shared, faults=final|reset, peers=0|1, pageable=0|1, graphs=COUNT, graph-names=0|1, separated by "
    "commas";

[[noreturn]] void refuseSetting(std::string_view item, const char* why) {
  std::string message(item);
  refuse(CUDA_ERROR_INVALID_VALUE, message.append(": ").append(why).append(". ").append(accepted));
}

uint64_t parseNumber(std::string_view item, std::string_view text, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) refuseSetting(item, "not a number");
  if (value < least || value > most) refuseSetting(item, "out of range");
  return value;
}

uint64_t parseBytes(std::string_view item, std::string_view text) {
  struct Unit {
    std::string_view suffix;
    int shift;
  };
  static constexpr Unit units[] = {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}};
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.suffix)) continue;
    text.remove_suffix(unit.suffix.size());
    return parseNumber(item, text, 1, (uint64_t{1} << 44) >> unit.shift) << unit.shift;
  }
  return parseNumber(item, text, 1, uint64_t{1} << 44);
}

double parseSeconds(std::string_view item, std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) refuseSetting(item, "not a number");
  if (!(value >= 0 && value <= 1e9)) refuseSetting(item, "out of range");
  return value;
}

uint32_t parseCheck(std::string_view item, std::string_view text) {
  struct Check {
    std::string_view name;
    uint32_t bits;
  };
  static constexpr Check checks[] = {
      {"uninitialized", checkUninitialized}, {"races", checkRaces}, {"shared", checkUninitialized | checkRaces}};
  for (const Check& check : checks)
    if (check.name == text) return check.bits;
  refuseSetting(item, "unknown check");
}

void parseItem(Settings& settings, std::string_view item) {
  size_t equals = item.find('=');
  if (equals == std::string_view::npos) refuseSetting(item, "no \"=\"");
  std::string_view key = item.substr(0, equals), value = item.substr(equals + 1);
  if (key == "devices") {
    settings.devices = static_cast<int>(parseNumber(item, value, 1, 64));
  } else if (key == "memory") {
    settings.memoryBytes = parseBytes(item, value);
  } else if (key == "architecture") {
    settings.architecture = static_cast<int>(parseNumber(item, value, 75, 121));
  } else if (key == "workers") {
    settings.workers = static_cast<int>(parseNumber(item, value, 1, 1024));
  } else if (key == "schedule") {
    settings.schedule = parseNumber(item, value, 0, ~uint64_t{0});
  } else if (key == "timeout") {
    settings.timeoutSeconds = parseSeconds(item, value);
  } else if (key == "link") {
    settings.hostLink = parseBytes(item, value);
  } else if (key == "peer-link") {
    settings.peerLink = parseBytes(item, value);
  } else if (key == "check") {
    settings.checks |= parseCheck(item, value);
  } else if (key == "peers") {
    settings.arePeers = parseNumber(item, value, 0, 1) != 0;
  } else if (key == "pageable") {
    settings.pageableAccess = parseNumber(item, value, 0, 1) != 0;
  } else if (key == "graphs") {
    settings.graphs = parseNumber(item, value, 1, ~uint64_t{0});
  } else if (key == "graph-names") {
    settings.graphNames = parseNumber(item, value, 0, 1) != 0;
  } else if (key == "faults") {
    if (value != "final" && value != "reset") refuseSetting(item, "neither final nor reset");
    settings.faultsAreFinal = value == "final";
  } else {
    refuseSetting(item, "unknown key");
  }
}

}  // namespace

Settings parseSettings(std::string_view text) {
  Settings settings;
  while (!text.empty()) {
    size_t comma = text.find(',');
    parseItem(settings, text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  // Device memory is divided into pieces of 2 MiB, and a device needs several of them.
  if (settings.memoryBytes < (uint64_t{8} << 20)) refuseSetting("memory", "less than 8 MiB");
  if (settings.workers == 0) settings.workers = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return settings;
}

}  // namespace vgpu::emulator::api
