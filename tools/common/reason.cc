#include "tools/common/reason.h"

#include <spdlog/spdlog.h>

#include <cstdio>
#include <string_view>

#include "tools/common/printable.h"

namespace vgpu {

std::string reasonOf(const kj::Exception& exception) {
  static constexpr std::string_view travelled = "remote exception: ";
  std::string text(exception.getDescription().cStr(), exception.getDescription().size());
  while (text.starts_with(travelled)) text.erase(0, travelled.size());
  return text;
}

int exitCodeOf(const char* program, kj::FunctionParam<int()> action) {
  int code = 1;
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { code = action(); })) {
    std::fprintf(stderr, "%s: %s\n", program, printable(reasonOf(*exception)).c_str());
    return 1;
  }
  return code;
}

void LogToSpdlog::logMessage(kj::LogSeverity severity, const char*, int, int, kj::String&& text) {
  bool serious = severity == kj::LogSeverity::ERROR || severity == kj::LogSeverity::FATAL;
  spdlog::log(serious ? spdlog::level::warn : spdlog::level::debug, "{}", std::string_view(text.cStr(), text.size()));
}

}  // namespace vgpu
