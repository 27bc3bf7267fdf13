// A Cap'n Proto compiler plug-in: reads the compiled schema on stdin and writes the files that other targets compile.
// It runs in the build tree only; nothing that it writes is in the repository.
#include <capnp/schema.capnp.h>
#include <capnp/serialize.h>
#include <kj/debug.h>
#include <kj/main.h>

#include <cstdlib>
#include <fstream>

#include "model.h"

namespace vgpu::generator {

class Generator {
 public:
  explicit Generator(kj::ProcessContext& context) : context(context) {}

  kj::MainFunc getMain() {
    return kj::MainBuilder(context, "vgpu schema generator", "Writes client, worker and tables from cuda.capnp.")
        .callAfterParsing(KJ_BIND_METHOD(*this, run))
        .build();
  }

 private:
  kj::MainBuilder::Validity run() {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = 1 << 30;
    capnp::StreamFdMessageReader message(0, options);
    auto request = message.getRoot<capnp::schema::CodeGeneratorRequest>();
    capnp::SchemaLoader loader;
    for (auto node : request.getNodes()) loader.load(node);
    const char* table = getenv("VGPU_DRIVER_ENTRIES");  // a plug-in of the compiler has no arguments
    if (table == nullptr) return "VGPU_DRIVER_ENTRIES names no table of entries";
    auto entries = readEntries(table);
    write("driver-entries.inc", emitEntriesHeader(entries));
    write("cuda-unsupported.inc", emitUnsupported(entries));
    write("cuda-per-thread.inc", emitPerThread(entries));
    for (auto file : request.getRequestedFiles()) {
      auto methods = readMethods(loader, file.getId(), entries);
      write("vgpu/api/cuda.capnp", emitStructs(loader, file.getId(), methods));
      write("cuda-methods.h", emitMethodsHeader(methods));
      write("cuda-methods.cc", emitMethodsSource(methods));
      write("cuda-frames.h", emitFrames(methods));
      write("cuda-client.cc", emitClient(methods));
      write("cuda-entries.inc", emitEntryTable(methods));
      write("cuda-handlers.h", emitHandlers(methods));
      write("cuda-dispatch.cc", emitDispatch(methods));
      write("cuda-driver-entries.inc", emitDriverEntries(methods));
      write("coverage.md", emitCoverage(methods));
    }
    return true;
  }

  void write(const char* name, const std::string& text) {
    std::ofstream file(name, std::ios::trunc);
    file << text;
    file.close();
    KJ_REQUIRE(file.good(), "cannot write", name);
  }

  kj::ProcessContext& context;
};

}  // namespace vgpu::generator

KJ_MAIN(vgpu::generator::Generator)
