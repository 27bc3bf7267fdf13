#include "intercept/session/core-dumps.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

#include "intercept/session/entry.h"

namespace vgpu::client {

namespace {

constexpr size_t mostText = 1024;  // of a file or pipe name, with the terminating zero

constexpr std::pair<std::string_view, uint32_t> contentNames[] = {
    {"skip_nonrelocated_elf_images", CU_COREDUMP_SKIP_NONRELOCATED_ELF_IMAGES},
    {"skip_global_memory", CU_COREDUMP_SKIP_GLOBAL_MEMORY},
    {"skip_shared_memory", CU_COREDUMP_SKIP_SHARED_MEMORY},
    {"skip_local_memory", CU_COREDUMP_SKIP_LOCAL_MEMORY},
    {"skip_abort", CU_COREDUMP_SKIP_ABORT},
    {"skip_constbank_memory", CU_COREDUMP_SKIP_CONSTBANK_MEMORY},
};

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}
bool isOn(const char* name) { return std::string_view(environment(name)) == "1"; }

// Expands %h (host) and %p (process) in a name.
std::string nameFrom(std::string text) {
  auto replace = [&](std::string_view what, const std::string& with) {
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) text.replace(at, what.size(), with);
  };
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  replace("%h", host.data());
  replace("%p", std::to_string(getpid()));
  return text;
}

// Settings from cuda-gdb's environment variables take precedence: calls do not change them (CUDA's rule).
CoreDumpSettings fromEnvironment() {
  CoreDumpSettings settings;
  settings.onRequest = isOn("CUDA_ENABLE_USER_TRIGGERED_COREDUMP") || *environment("CUDA_COREDUMP_PIPE") != '\0';
  settings.onException = settings.onRequest || isOn("CUDA_ENABLE_COREDUMP_ON_EXCEPTION");
  settings.file = nameFrom(environment("CUDA_COREDUMP_FILE"));
  settings.pipe = nameFrom(environment("CUDA_COREDUMP_PIPE"));
  if (isOn("CUDA_ENABLE_LIGHTWEIGHT_COREDUMP")) settings.contents |= CU_COREDUMP_LIGHTWEIGHT_FLAGS;
  if (std::string_view(environment("CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION")) == "0") settings.contents |= CU_COREDUMP_SKIP_ABORT;
  std::string_view contents = environment("CUDA_COREDUMP_GENERATION_FLAGS");
  for (auto& [name, flag] : contentNames)
    if (contents.find(name) != contents.npos) settings.contents |= flag;
  return settings;
}

struct Process {
  std::mutex mutex;  // guards the settings of all contexts too
  const CoreDumpSettings given = fromEnvironment();
  CoreDumpSettings settings = given;
  bool isTold = false;
};
// Never destroyed: static destructors may still call this.
Process& process() {
  static Process& made = *new Process;
  return made;
}

void tell(Process& all) {
  if (std::exchange(all.isTold, true)) return;
  reportFailure("the program asks for core dumps of its GPU, but a virtual GPU writes none. Run it natively for one, or on the emulated "
                "device (vgpud --device emulated), which reports the kernel, the thread and the line of a fault");
}

bool isText(CUcoredumpSettings which) { return which == CU_COREDUMP_FILE || which == CU_COREDUMP_PIPE; }

// The size of a setting, for a text the largest; 0 if the setting does not exist.
size_t bytesOf(CoreDumpsOf whose, CUcoredumpSettings which) {
  const bool isOfProcess = which == CU_COREDUMP_ENABLE_USER_TRIGGER || which == CU_COREDUMP_PIPE;
  if (which < CU_COREDUMP_ENABLE_ON_EXCEPTION || which >= CU_COREDUMP_MAX || (isOfProcess && whose == CoreDumpsOf::context)) return 0;
  return isText(which) ? mostText : which == CU_COREDUMP_GENERATION_FLAGS ? sizeof(uint32_t) : sizeof(bool);
}

uint32_t numberOf(const CoreDumpSettings& settings, CUcoredumpSettings which) {
  switch (which) {
    case CU_COREDUMP_ENABLE_ON_EXCEPTION: return settings.onException;
    case CU_COREDUMP_ENABLE_USER_TRIGGER: return settings.onRequest;
    case CU_COREDUMP_TRIGGER_HOST: return (settings.contents & CU_COREDUMP_SKIP_ABORT) == 0;
    case CU_COREDUMP_LIGHTWEIGHT: return (settings.contents & CU_COREDUMP_LIGHTWEIGHT_FLAGS) == CU_COREDUMP_LIGHTWEIGHT_FLAGS;
    default: return settings.contents;
  }
}

void setNumber(CoreDumpSettings& settings, CUcoredumpSettings which, uint32_t value) {
  auto setFlags = [&](uint32_t flags, bool on) { settings.contents = on ? settings.contents | flags : settings.contents & ~flags; };
  switch (which) {
    case CU_COREDUMP_ENABLE_ON_EXCEPTION: settings.onException = value != 0; return;
    case CU_COREDUMP_ENABLE_USER_TRIGGER:
      settings.onRequest = value != 0;
      settings.onException |= settings.onRequest;
      return;
    case CU_COREDUMP_TRIGGER_HOST: return setFlags(CU_COREDUMP_SKIP_ABORT, value == 0);
    case CU_COREDUMP_LIGHTWEIGHT: return setFlags(CU_COREDUMP_LIGHTWEIGHT_FLAGS, value != 0);
    default: settings.contents = value;
  }
}

auto textOf(CUcoredumpSettings which) { return which == CU_COREDUMP_FILE ? &CoreDumpSettings::file : &CoreDumpSettings::pipe; }

// `bytes`: the setting's size.
CUresult get(const CoreDumpSettings& settings, CUcoredumpSettings which, size_t bytes, void* value, size_t size) {
  if (isText(which)) {
    const std::string& text = settings.*textOf(which);
    if (size < text.size()) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(value, text.c_str(), std::min(size, text.size() + 1));
    return CUDA_SUCCESS;
  }
  if (size != bytes) return CUDA_ERROR_INVALID_VALUE;
  const uint32_t number = numberOf(settings, which);
  std::memcpy(value, &number, bytes);  // little-endian: the low byte first
  return CUDA_SUCCESS;
}

CUresult set(CoreDumpSettings& settings, CUcoredumpSettings which, size_t bytes, const void* value, size_t size) {
  const CoreDumpSettings& given = process().given;
  if (isText(which)) {
    if (size == 0 || size > bytes) return CUDA_ERROR_INVALID_VALUE;
    if (which == CU_COREDUMP_PIPE && settings.onRequest) return CUDA_ERROR_NOT_SUPPORTED;  // natively the pipe is open by then
    const char* text = static_cast<const char*>(value);
    const auto member = textOf(which);
    if ((given.*member).empty()) (settings.*member).assign(text, strnlen(text, size));
    return CUDA_SUCCESS;
  }
  if (size != bytes) return CUDA_ERROR_INVALID_VALUE;
  uint32_t number = 0;
  std::memcpy(&number, value, bytes);
  if (numberOf(given, which) == numberOf(CoreDumpSettings{}, which)) setNumber(settings, which, number);
  return CUDA_SUCCESS;
}

// Calls `body` with the process's or the context's settings, and with the size of setting `which`.
template <typename Body>
CUresult with(CoreDumpsOf whose, CUcoredumpSettings which, const void* value, size_t* size, Body&& body) {
  auto run = [&](CoreDumpSettings& settings) -> CUresult {
    const size_t bytes = bytesOf(whose, which);
    if (bytes == 0 || size == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (value == nullptr) return *size = bytes, CUDA_SUCCESS;
    std::lock_guard lock(process().mutex);
    return body(settings, bytes);
  };
  if (whose == CoreDumpsOf::process) return answerOf([&] { return run(process().settings); });
  return inContext([&](Thread& thread) -> CUresult {
    auto* context = thread.session.handles.find<api::Kind::CONTEXT>(thread.context());
    return context == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED : run(context->coreDumps);
  });
}

}  // namespace

void inheritCoreDumps(CoreDumpSettings& context) {
  std::lock_guard lock(process().mutex);
  context = process().settings;
}

CUresult getCoreDumps(CoreDumpsOf whose, CUcoredumpSettings which, void* value, size_t* size, const char* entry) {
  auto body = [&](CoreDumpSettings& settings, size_t bytes) { return get(settings, which, bytes, value, *size); };
  return noted(entry, with(whose, which, value, size, body));
}

CUresult setCoreDumps(CoreDumpsOf whose, CUcoredumpSettings which, const void* value, size_t* size, const char* entry) {
  auto body = [&](CoreDumpSettings& settings, size_t bytes) {
    CUresult result = set(settings, which, bytes, value, *size);
    if (settings.onException) tell(process());
    return result;
  };
  return noted(entry, with(whose, which, value, size, body));
}

void noteCoreDumps() {
  std::lock_guard lock(process().mutex);
  if (process().settings.onException) tell(process());
}

}  // namespace vgpu::client
