// Reads a library's table and writes what other targets compile. Runs during the build; its output exists only in the build tree.
#include <kj/debug.h>
#include <kj/exception.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "library-table.h"
#include "table.h"

namespace vgpu::generator {

namespace {

// Leaves a file with the same text untouched, so that its includers are not compiled again.
void write(const std::string& path, const std::string& text) {
  std::ifstream before(path);
  if (before.good() && std::string(std::istreambuf_iterator<char>(before), {}) == text) return;
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  KJ_REQUIRE(file.good(), "cannot write", path.c_str());
}

void generate(const std::string& path, const std::string& folder) {
  constexpr std::pair<const char*, Emitter*> outputs[] = {
      {"cuda-kinds.h", emitKinds},
      {"cuda-kind-states.h", emitKindStates},
      {"cuda-kind-modules.inc", emitKindModules},
      {"cuda-kind-ends.inc", emitKindEnds},
      {"cuda-described.h", emitDescribedHeader},
      {"cuda-described.cc", emitDescribedSource},
      {"cuda-parity.cc", emitParity},
      {"cuda-methods.h", emitMethodsHeader},
      {"cuda-methods.cc", emitMethodsSource},
      {"cuda-frames.h", emitFrames},
      {"cuda-frames.capnp", emitSchema},
      {"cuda-client.cc", emitClient},
      {"cuda-entries.inc", emitEntries},
      {"cuda-all-entries.inc", emitAllEntries},
      {"cuda-handlers.h", emitHandlers},
      {"cuda-dispatch.cc", emitDispatch},
      {"cuda-driver-entries.inc", emitDriver},
      {"driver-entries.inc", emitHeaders},
      {"cuda-unsupported.inc", emitUnsupported},
      {"cuda-per-thread.inc", emitPerThread},
      {"coverage.md", emitCoverage},
  };
  Table table = readTable(path, path.substr(0, path.rfind('.')) + ".types");  // the file with the vendor's types lies beside the table
  for (auto& [name, emit] : outputs) write(folder + "/" + name, emit(table));
}

void generateLibraries(const std::string& path, const std::string& folder) {
  LibraryTable table = readLibraries(path);
  write(folder + "/library-rows.cc", emitLibraryRows(table));
  write(folder + "/library-parity.cc", emitLibraryParity(table));
  write(folder + "/libraries.md", emitLibraryCoverage(table));
  for (unsigned library = 0; library < table.libraries.size(); ++library) {
    std::string prefix = folder + "/" + table.libraries[library].name;
    write(prefix + "-exports.cc", emitLibraryExports(table, library));
    write(prefix + "-answers.cc", emitLibraryAnswers(table, library));
    write(prefix + ".map", emitLibraryMap(table, library));
  }
}

}  // namespace

}  // namespace vgpu::generator

int main(int argc, char** argv) {
  const bool libraries = argc == 4 && std::string_view(argv[1]) == "--libraries";
  if (argc != 3 && !libraries) return fprintf(stderr, "usage: vgpu-generator [--libraries] TABLE FOLDER\n"), 2;
  auto problem = kj::runCatchingExceptions(
      [&] { (libraries ? vgpu::generator::generateLibraries : vgpu::generator::generate)(argv[argc - 2], argv[argc - 1]); });
  KJ_IF_MAYBE (e, problem) return fprintf(stderr, "vgpu-generator: %s: %s\n", argv[argc - 2], e->getDescription().cStr()), 1;
  return 0;
}
