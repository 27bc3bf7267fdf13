// KJ's exceptions and log entries as messages for people.
#pragma once

#include <kj/exception.h>
#include <kj/function.h>

#include <string>

namespace vgpu {

// An exception's description for people: without "remote exception:", which says only that the error came through RPC, and without stack
// and file. It may contain a program's name, so it must be passed through printable() before it is printed.
std::string reasonOf(const kj::Exception& exception);

// The body of main(): returns the exit code of `action`; or 1, having printed the program's name and the reason to stderr, if it throws.
int exitCodeOf(const char* program, kj::FunctionParam<int()> action);

// Passes KJ's log entries (a peer's broken message, for instance) to spdlog. Lives as long as main().
class LogToSpdlog : public kj::ExceptionCallback {
 public:
  void logMessage(kj::LogSeverity severity, const char* file, int line, int contextDepth, kj::String&& text) override;
  StackTraceMode stackTraceMode() override { return StackTraceMode::NONE; }
};

}  // namespace vgpu
