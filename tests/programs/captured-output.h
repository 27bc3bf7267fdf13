// Captures the program's standard output in a file or a pipe, which C's `stdout` buffers.
#pragma once

#include <fcntl.h>

#include <string>
#include <thread>

#include "program.h"

class CapturedOutput {
 public:
  enum class Into { file, pipe };

  // Call it before the first CUDA call and the first line: output is captured from here on.
  explicit CapturedOutput(Into into) : saved(dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    std::setvbuf(stdout, nullptr, _IOFBF, 1 << 14);
    if (into == Into::file) {
      file = std::tmpfile();
      dup2(fileno(file), STDOUT_FILENO);
      return;
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) std::exit(3);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[1]);
    reader = std::thread([this, end = ends[0]] {
      char piece[4096];
      for (ssize_t got; (got = read(end, piece, sizeof piece)) > 0;) text.append(piece, got);
      close(end);
    });
  }

  // Returns all output, and restores standard output.
  std::string finish() {
    std::fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    if (reader.joinable()) reader.join();
    if (file == nullptr) return text;
    std::rewind(file);
    char piece[4096];
    for (size_t got; (got = std::fread(piece, 1, sizeof piece, file)) > 0;) text.append(piece, got);
    std::fclose(file);
    return text;
  }

 private:
  int saved;
  std::FILE* file = nullptr;
  std::thread reader;
  std::string text;
};

// Whether two texts are the same; otherwise prints the first difference with its context to stderr.
inline bool sameText(const char* what, const std::string& got, const std::string& want) {
  if (got == want) return true;
  size_t at = 0;
  while (at < got.size() && at < want.size() && got[at] == want[at]) ++at;
  const size_t from = at < 60 ? 0 : at - 60;
  std::fprintf(stderr, "%s: %zu characters, expected %zu; they differ at %zu\n--- got: ...%s\n--- expected: ...%s\n", what,
               got.size(), want.size(), at, got.substr(from, 200).c_str(), want.substr(from, 200).c_str());
  return false;
}
