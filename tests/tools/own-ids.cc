// A process id namespace, and the ids of the processes in it.
#include "checkpoint/process/own-ids.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "checkpoint/process/process-tree.h"

using namespace vgpu::process;
using vgpu::snapshot::ProcessPart;

namespace {

int exitCode(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Runs `body` in a separate process, because it makes a namespace for all its later children. Returns the result of `body`; 0 if namespaces
// cannot be made.
int apart(int (*body)()) {
  pid_t child = fork();
  if (child != 0) return exitCode(child);
  int code = 0;
  KJ_IF_MAYBE (failure, kj::runCatchingExceptions([&] { code = body(); }))
    code = strstr(failure->getDescription().cStr(), "a copy needs a pid namespace of its own") == nullptr ? 100 : 0;
  _exit(code);
}

}  // namespace

TEST_CASE("the first process of a namespace does not take a saved id, and its descendants are found by their ids in it") {
  CHECK(apart([] {
          ProcessPart part;
          part.threads = {2, 3, 40};
          int ends[2];
          if (pipe(ends) != 0) return 10;
          pid_t first = forkWithOwnIds(part, [&] {
            if (getpid() != 1 || factsOf(1).name != factsOf(getpid()).name) return 11;  // its /proc belongs to the namespace
            pid_t child = fork();
            if (child == 0) pause();
            if (write(ends[1], &child, sizeof child) != sizeof child) return 12;
            pause();
            return 0;
          });
          pid_t inside = 0;
          if (read(ends[0], &inside, sizeof inside) != sizeof inside) return 13;
          if (inside <= 40) return 14;
          auto ids = idsHere(first);
          if (ids.size() != 2 || ids.at(1) != first || factsOf(ids.at(inside)).parent != first) return 15;
          kill(first, SIGKILL);
          if (exitCode(first) != 128 + SIGKILL) return 16;
          return hasEnded(ids.at(inside)) ? 0 : 17;
        }) == 0);
}

TEST_CASE("the first process of a namespace ends with the process that made it") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  CHECK(apart([] {
          forkWithOwnIds({}, [] {
            pause();
            return 0;
          });
          return 0;
        }) == 0);
  close(ends[1]);
  char byte;
  CHECK(read(ends[0], &byte, 1) == 0);  // the holder of the other end has ended
  close(ends[0]);
}

TEST_CASE("no copy can be made beside the first process of a container") {
  ProcessPart part;
  part.threads = {1, 7};
  auto failure = kj::runCatchingExceptions([&] { forkWithOwnIds(part, [] { return 0; }); });
  REQUIRE(failure != nullptr);
  CHECK(strstr(KJ_ASSERT_NONNULL(failure).getDescription().cStr(), "one of the saved processes has process id 1") != nullptr);
}
