#include "runtime-run.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "../scratch-directory.h"

using vgpu::test::ScratchDirectory;

namespace {

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

[[noreturn]] void become(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                         const ScratchDirectory& folder) {
  auto redirect = [](const std::string& path, int to) { dup2(open(path.c_str(), O_WRONLY | O_CREAT, 0600), to); };
  redirect(folder.path + "/output", STDOUT_FILENO);
  redirect(folder.path + "/errors", STDERR_FILENO);
  for (const std::string& pair : environment) putenv(const_cast<char*>(pair.c_str()));
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(126);
}

Outcome run(const std::vector<std::string>& command, std::vector<std::string> environment) {
  ScratchDirectory folder;
  environment.push_back("VGPU_TEST_CALLS=" + folder.path + "/calls");
  pid_t child = fork();
  if (child == 0) become(command, environment, folder);
  int status;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("cannot wait for " + command[0]);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read(folder.path + "/output"),
          read(folder.path + "/errors"), linesOf(read(folder.path + "/calls"))};
}

}  // namespace

bool Outcome::called(const std::string& start) const { return countOf(start) > 0; }

size_t Outcome::countOf(const std::string& start) const {
  return std::ranges::count_if(calls, [&](const std::string& call) { return call.starts_with(start); });
}

bool Outcome::printed(const std::string& line) const { return std::ranges::count(linesOf(output), line) > 0; }

Outcome runPreloaded(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  std::vector<std::string> all = {"LD_PRELOAD=" VGPU_TEST_CUDART, "LD_LIBRARY_PATH=" VGPU_TEST_DRIVER_FOLDER};
  all.insert(all.end(), environment.begin(), environment.end());
  return run(command, all);
}

Outcome runPlain(const std::vector<std::string>& command) { return run(command, {}); }
