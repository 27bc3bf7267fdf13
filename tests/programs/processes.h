// For programs with two processes: the program runs itself again as a child, with a pipe in each direction. A child has its own session.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstring>
#include <string>

#include "program.h"

// One end of the two pipes. Plain data is sent; if the peer has ended, this process ends too.
class Peer {
 public:
  Peer(int from, int to) : from(from), to(to) {}

  template <typename T>
  void send(const T& value) const {
    if (write(to, &value, sizeof value) == sizeof value) return;
    std::fprintf(stderr, "the other process has ended\n");
    std::exit(1);
  }
  template <typename T>
  T receive() const {
    T value;
    for (size_t got = 0; got < sizeof value;) {
      const ssize_t more = read(from, reinterpret_cast<char*>(&value) + got, sizeof value - got);
      if (more <= 0) {
        std::fprintf(stderr, "the other process has ended\n");
        std::exit(1);
      }
      got += size_t(more);
    }
    return value;
  }
  // A point that both processes reach: everything that they have sent before has been received.
  void meet() const {
    send('.');
    receive<char>();
  }

 private:
  int from, to;
};

// The parent's end of a child that runs `role` and inherits the descriptor `inherited` under the same number.
class Child : public Peer {
 public:
  explicit Child(const char* role, int inherited = -1) : Child(start(role, inherited)) {}

  // Whether it has ended with code 0.
  bool ended() const {
    int status = 0;
    return waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  struct Started {
    pid_t process;
    int from, to;
  };
  explicit Child(const Started& started) : Peer(started.from, started.to), process(started.process) {}

  static Started start(const char* role, int inherited) {
    int toChild[2], toParent[2];
    if (pipe2(toChild, O_CLOEXEC) != 0 || pipe2(toParent, O_CLOEXEC) != 0) std::exit(1);
    for (int theirs : {toChild[0], toParent[1]}) fcntl(theirs, F_SETFD, 0);
    if (inherited >= 0) fcntl(inherited, F_SETFD, 0);
    std::string numbers[] = {std::to_string(toChild[0]), std::to_string(toParent[1]), std::to_string(inherited)};
    std::string self = "/proc/self/exe", as = role;
    char* arguments[] = {self.data(), as.data(), numbers[0].data(), numbers[1].data(), numbers[2].data(), nullptr};
    // Only the parent pauses.
    std::vector<char*> environment;
    for (char** each = environ; *each; ++each)
      if (std::strncmp(*each, "VGPU_PAUSE_FILE=", 16) != 0) environment.push_back(*each);
    environment.push_back(nullptr);
    pid_t child = 0;
    if (posix_spawn(&child, self.c_str(), nullptr, nullptr, arguments, environment.data()) != 0) std::exit(1);
    close(toChild[0]);
    close(toParent[1]);
    return {child, toParent[0], toChild[1]};
  }

  pid_t process;
};

// The child's end, from main's arguments.
inline Peer parentOf(char** arguments) { return Peer(std::atoi(arguments[2]), std::atoi(arguments[3])); }
inline bool isChild(int argc, char** argv, const char* role) { return argc == 5 && std::string(argv[1]) == role; }
inline int inheritedBy(char** arguments) { return std::atoi(arguments[4]); }
