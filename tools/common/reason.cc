#include "tools/common/reason.h"

#include <spdlog/spdlog.h>

#include <string_view>

namespace vgpu {

std::string reasonOf(const kj::Exception& exception) {
  static constexpr std::string_view travelled = "remote exception: ";
  std::string text(exception.getDescription().cStr(), exception.getDescription().size());
  while (text.starts_with(travelled)) text.erase(0, travelled.size());
  return text;
}

void LogToSpdlog::logMessage(kj::LogSeverity severity, const char*, int, int, kj::String&& text) {
  bool serious = severity == kj::LogSeverity::ERROR || severity == kj::LogSeverity::FATAL;
  spdlog::log(serious ? spdlog::level::warn : spdlog::level::debug, "{}", std::string_view(text.cStr(), text.size()));
}

}  // namespace vgpu
