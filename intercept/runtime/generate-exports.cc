// The build-time generator of the lists and the version scripts of our libcudart.
//
//   generate-exports TOOLKIT_LIBCUDART FORBIDDEN_LIST OUTPUT_FOLDER OBJECT...
//
// reads which functions the toolkit's library exports, why a session cannot have some of them (forbidden.list), and which functions our
// objects define and need, and writes
//   export-list.inc        EXPORT(name), sorted: every function of the toolkit's library
//   unsupported-list.inc   UNSUPPORTED(name, "reason"): the functions that no object defines
//   driver-entry-list.inc  ENTRY(name): driver functions that the objects call
//   exports.map            the version script: exactly those functions, under the toolkit's version name
//   runtime.md             a page that lists all of these functions
// and for programs built with CUDA 12, whose functions are ours of the same name or, if they differ, vgpu12_ and the name:
//   export-list-12.inc     EXPORT(name, function), sorted
//   exports-12.map         the version script of libcudart.so.12
#include <cctype>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

#include "vgpu/image/elf-file.h"

using vgpu::image::ElfFile;

namespace {

struct Library {
  std::string version;  // the name of its symbol version, which an absolute symbol of the same name marks
  std::set<std::string> functions;
};

Library readLibrary(const char* path) {
  ElfFile file(path);
  auto table = file.findSection(SHT_DYNSYM);
  if (!table || file.header().e_machine != EM_X86_64)
    throw std::runtime_error(std::string(path) + " is no shared library for x86-64");
  Library library;
  for (const Elf64_Sym& symbol : file.symbolsOf(*table)) {
    std::string name(file.nameOf(*table, symbol));
    if (symbol.st_shndx == SHN_ABS) library.version = name;
    if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC) library.functions.insert(name);
  }
  if (library.version.empty() || library.functions.empty())
    throw std::runtime_error(std::string(path) + " exports no versioned functions");
  return library;
}

void readObject(const char* path, std::set<std::string>& defined, std::set<std::string>& needed) {
  ElfFile file(path);
  auto table = file.findSection(SHT_SYMTAB);
  if (!table || file.header().e_machine != EM_X86_64)
    throw std::runtime_error(std::string(path) + " is no object file for x86-64");
  for (const Elf64_Sym& symbol : file.symbolsOf(*table)) {
    if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
    std::string name(file.nameOf(*table, symbol));
    if (symbol.st_shndx != SHN_UNDEF)
      defined.insert(name);
    else if (name.starts_with("cu") && name.size() > 2 && isupper(name[2]))
      needed.insert(name);
  }
}

void writeRows(const std::string& path, const char* macro, const std::set<std::string>& names) {
  std::ofstream file(path, std::ios::trunc);
  for (const std::string& name : names) file << macro << '(' << name << ")\n";
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

// The reasons by function name. `without`: the functions that have no row.
std::map<std::string, std::string> readReasons(const char* path, const std::set<std::string>& without) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  std::map<std::string, std::string> reasons;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) throw std::runtime_error(std::string(path) + ": a line is REASON: NAME ...");
    std::istringstream names(line.substr(colon + 2));
    for (std::string name; names >> name;) {
      const bool isPrefix = name.ends_with('*');
      if (isPrefix) name.pop_back();
      const size_t before = reasons.size();
      for (const std::string& function : without)
        if (isPrefix ? function.starts_with(name) : function == name) reasons.emplace(function, line.substr(0, colon));
      if (reasons.size() == before) throw std::runtime_error(std::string(path) + ": no function without a row fits " + name);
    }
  }
  for (const std::string& function : without)
    if (!reasons.contains(function)) throw std::runtime_error(function + " has no row, and " + path + " gives no reason");
  return reasons;
}

void writeReasons(const std::string& path, const std::map<std::string, std::string>& reasons) {
  std::ofstream file(path, std::ios::trunc);
  for (auto& [name, why] : reasons) file << "UNSUPPORTED(" << name << ", \"" << why << "\")\n";
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

void writeCoverage(const std::string& path, const Library& library, const std::map<std::string, std::string>& reasons) {
  std::ofstream file(path, std::ios::trunc);
  file << "# Runtime functions\n\nGenerated from the rows of `intercept/runtime` and `forbidden.list` there.\n\n"
       << library.functions.size() - reasons.size() << " functions are supported, " << reasons.size()
       << " are refused with a reason.\n\n| function | |\n|---|---|\n";
  for (const std::string& name : library.functions) {
    auto refused = reasons.find(name);
    file << "| `" << name << "` | " << (refused == reasons.end() ? "supported" : "refused: " + refused->second) << " |\n";
  }
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

void writeVersionScript(const std::string& path, const Library& library) {
  std::ofstream file(path, std::ios::trunc);
  file << library.version << " {\n  global:\n";
  for (const std::string& name : library.functions) file << "    " << name << ";\n";
  file << "  local: *;\n};\n";
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

void writeFor12(const std::string& folder, Library library, const std::set<std::string>& defined) {
  const std::string prefix = "vgpu12_";
  std::map<std::string, std::string> functions;
  for (const std::string& name : library.functions) functions.emplace(name, name);
  for (const std::string& name : defined)
    if (name.starts_with(prefix)) functions[name.substr(prefix.size())] = name;
  std::ofstream rows(folder + "export-list-12.inc", std::ios::trunc);
  library.functions.clear();
  for (auto& [name, function] : functions) {
    rows << "EXPORT(" << name << ", " << function << ")\n";
    library.functions.insert(name);
  }
  if (!rows.flush()) throw std::runtime_error("cannot write " + folder + "export-list-12.inc");
  library.version = "libcudart.so.12";
  writeVersionScript(folder + "exports-12.map", library);
}

void generate(int count, char** arguments) {
  if (count < 5) throw std::runtime_error("usage: generate-exports TOOLKIT_LIBCUDART FORBIDDEN_LIST OUTPUT_FOLDER OBJECT...");
  Library library = readLibrary(arguments[1]);
  std::string folder = std::string(arguments[3]) + "/";
  std::set<std::string> defined, needed, unsupported;
  for (int i = 4; i < count; ++i) readObject(arguments[i], defined, needed);
  for (const std::string& name : library.functions)
    if (!defined.contains(name)) unsupported.insert(name);
  for (const std::string& name : defined)
    if ((name.starts_with("cuda") || name.starts_with("__cuda")) && !library.functions.contains(name))
      throw std::runtime_error(name + " is defined here, but " + arguments[1] + " has no such function");
  writeRows(folder + "export-list.inc", "EXPORT", library.functions);
  const auto reasons = readReasons(arguments[2], unsupported);
  writeReasons(folder + "unsupported-list.inc", reasons);
  writeCoverage(folder + "runtime.md", library, reasons);
  writeRows(folder + "driver-entry-list.inc", "ENTRY", needed);
  writeVersionScript(folder + "exports.map", library);
  writeFor12(folder, library, defined);
  std::printf("libcudart: %zu of %zu functions have rows, %zu are refused; %zu driver functions are called\n",
              library.functions.size() - unsupported.size(), library.functions.size(), unsupported.size(), needed.size());
}

}  // namespace

int main(int count, char** arguments) {
  try {
    generate(count, arguments);
    return 0;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "generate-exports: %s\n", problem.what());
    return 1;
  }
}
