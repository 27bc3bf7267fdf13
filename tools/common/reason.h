// Between KJ's way of reporting and a person's way of reading.
#pragma once

#include <kj/exception.h>
#include <kj/function.h>

#include <string>

namespace vgpu {

// An exception's description as a person should read it: without "remote exception:", which says only that the error
// travelled, and without stack and file. What a program calls itself may be in it: what shows it makes it printable.
std::string reasonOf(const kj::Exception& exception);

// What main() does: the exit code of `action`; or 1, with the reason on stderr behind the program's name, if it
// throws.
int exitCodeOf(const char* program, kj::FunctionParam<int()> action);

// Sends what KJ logs (a peer's broken message, for instance) to spdlog. Lives as long as main() does.
class LogToSpdlog : public kj::ExceptionCallback {
 public:
  void logMessage(kj::LogSeverity severity, const char* file, int line, int contextDepth, kj::String&& text) override;
  StackTraceMode stackTraceMode() override { return StackTraceMode::NONE; }
};

}  // namespace vgpu
