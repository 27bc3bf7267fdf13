// Reads a library's table and writes what other targets compile. It runs in the build tree only; nothing that it writes is in the
// repository.
#include <kj/debug.h>
#include <kj/exception.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "table.h"

namespace vgpu::generator {

namespace {

// A file that has the text already keeps its time, so that what includes it is not compiled again.
void write(const std::string& path, const std::string& text) {
  std::ifstream before(path);
  if (before.good() && std::string(std::istreambuf_iterator<char>(before), {}) == text) return;
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  KJ_REQUIRE(file.good(), "cannot write", path.c_str());
}

void generate(const std::string& path, const std::string& folder) {
  constexpr std::pair<const char*, std::string (*)(const Table&)> outputs[] = {
      {"cuda-kinds.h", emitKinds},
      {"cuda-methods.h", emitMethodsHeader},
      {"cuda-methods.cc", emitMethodsSource},
      {"cuda-frames.h", emitFrames},
      {"cuda-frames.capnp", emitSchema},
      {"cuda-client.cc", emitClient},
      {"cuda-entries.inc", emitEntries},
      {"cuda-handlers.h", emitHandlers},
      {"cuda-dispatch.cc", emitDispatch},
      {"cuda-driver-entries.inc", emitDriver},
      {"driver-entries.inc", emitHeaders},
      {"cuda-unsupported.inc", emitUnsupported},
      {"cuda-per-thread.inc", emitPerThread},
      {"coverage.md", emitCoverage},
  };
  Table table = readTable(path);
  for (auto& [name, emit] : outputs) write(folder + "/" + name, emit(table));
}

}  // namespace

}  // namespace vgpu::generator

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: vgpu-generator TABLE FOLDER\n"), 2;
  auto problem = kj::runCatchingExceptions([&] { vgpu::generator::generate(argv[1], argv[2]); });
  KJ_IF_MAYBE (e, problem) return fprintf(stderr, "vgpu-generator: %s: %s\n", argv[1], e->getDescription().cStr()), 1;
  return 0;
}
