// Between KJ's way of reporting and a person's way of reading.
#pragma once

#include <kj/exception.h>

#include <string>

namespace vgpu {

// An exception's description as a person should read it: without "remote exception:", which says only that the error
// travelled, and without stack and file.
std::string reasonOf(const kj::Exception& exception);

// Sends what KJ logs (a peer's broken message, for instance) to spdlog. Lives as long as main() does.
class LogToSpdlog : public kj::ExceptionCallback {
 public:
  void logMessage(kj::LogSeverity severity, const char* file, int line, int contextDepth, kj::String&& text) override;
  StackTraceMode stackTraceMode() override { return StackTraceMode::NONE; }
};

}  // namespace vgpu
