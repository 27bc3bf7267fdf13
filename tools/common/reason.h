// KJ's exceptions and logs as messages for people.
#pragma once

#include <kj/exception.h>
#include <kj/function.h>

#include <string>

namespace vgpu {

// An exception's description as a person should read it: without "remote exception:", which says only that the error came over
// RPC, and without stack and file. It may contain a program's name, so whoever prints it must pass it through printable().
std::string reasonOf(const kj::Exception& exception);

// The body of main(): returns the exit code of `action`; or 1, with the program's name and the reason on stderr, if it throws.
int exitCodeOf(const char* program, kj::FunctionParam<int()> action);

// Sends what KJ logs (a peer's broken message, for instance) to spdlog. Lives as long as main() does.
class LogToSpdlog : public kj::ExceptionCallback {
 public:
  void logMessage(kj::LogSeverity severity, const char* file, int line, int contextDepth, kj::String&& text) override;
  StackTraceMode stackTraceMode() override { return StackTraceMode::NONE; }
};

}  // namespace vgpu
