#include "tools/vgpud/state-directory.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/exception.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "../refused-call.h"
#include "../scratch-directory.h"

namespace vgpu::daemon {
namespace {

namespace fs = std::filesystem;

pid_t endedProcess() {
  pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

struct Folder : test::ScratchDirectory {
  Folder() : ScratchDirectory("/tmp") { fs::create_directory(sessions); }
  std::string sessions = path + "/sessions";

  StateDirectory::Shared make(const std::string& id, pid_t owner = getpid()) {
    return StateDirectory::make(sessions, id, owner);
  }
};

kj::AutoCloseFd pass(const std::string& path) {
  return kj::AutoCloseFd(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

// Why the directory is not adopted; empty if it is.
std::string refusal(const std::string& path, const std::string& id, pid_t program = getpid()) {
  auto caught = kj::runCatchingExceptions([&] { StateDirectory::adopt(pass(path), id, program); });
  KJ_IF_MAYBE (exception, caught) {
    return exception->getDescription().cStr();
  }
  return "";
}

bool refuses(const std::string& path, const std::string& id, const char* why) {
  return refusal(path, id).find(why) != std::string::npos;
}

}  // namespace

TEST_CASE("the state of a session that another daemon made is adopted and removed") {
  Folder folder;
  std::string path = folder.make("mine")->path();
  fs::create_directory(path + "/objects");
  std::ofstream(path + "/objects/data.mdb") << "x";
  auto adopted = StateDirectory::adopt(pass(path), "mine", getpid());
  CHECK(adopted->path() == path);
  CHECK(adopted->remove().empty());
  CHECK(!fs::exists(path));
}

TEST_CASE("a directory that is not the state of the program's own session is refused") {
  Folder folder;
  std::string mine = folder.make("mine")->path();
  CHECK(refusal(mine, "mine").empty());
  CHECK(refuses(mine, "other", "its path is not that of a state directory"));
  CHECK(refuses(folder.path, "mine", "its path is not that of a state directory"));
  CHECK(refuses(folder.make("ended", endedProcess())->path(), "ended", "belongs to another program"));
  CHECK(refuses(folder.make("parents", getppid())->path(), "parents", "belongs to another program"));
  std::string foreign = folder.sessions + "/foreign";
  fs::create_directory(foreign);
  fs::permissions(foreign, fs::perms(0700));
  CHECK(refuses(foreign, "foreign", "no owner"));
  fs::create_symlink(mine + "/owner", foreign + "/owner");
  CHECK(refuses(foreign, "foreign", "no owner"));
  fs::permissions(mine, fs::perms(0755));
  CHECK(refuses(mine, "mine", "mode is 755"));
  fs::permissions(mine, fs::perms(0700));
  kj::AutoCloseFd removed = pass(mine);
  fs::remove_all(mine);
  CHECK_THROWS_AS(StateDirectory::adopt(kj::mv(removed), "mine", getpid()), kj::Exception);
  CHECK_THROWS_AS(StateDirectory::adopt(kj::AutoCloseFd(open("/dev/null", O_RDONLY)), "null", getpid()), kj::Exception);
}

TEST_CASE("links in a session's state lead no removal out of it") {
  Folder folder;
  auto state = folder.make("mine");
  std::string precious = folder.path + "/precious";
  fs::create_directory(precious);
  std::ofstream(precious + "/file") << "x";
  fs::create_directory_symlink(precious, state->path() + "/objects");
  fs::create_symlink(precious + "/file", state->path() + "/link");
  fs::rename(state->path(), folder.path + "/elsewhere");
  fs::create_directory_symlink(precious, state->path());
  CHECK(state->remove().empty());
  CHECK(fs::exists(precious + "/file"));
  CHECK(fs::is_empty(folder.path + "/elsewhere"));
}

TEST_CASE("folders nested deeper than the limit of descriptors are removed") {
  Folder folder;
  auto state = folder.make("mine");
  kj::AutoCloseFd inner(open(state->path().c_str(), O_RDONLY | O_DIRECTORY));
  for (int depth = 0; depth < 3000; ++depth) {
    REQUIRE(mkdirat(inner, "d", 0700) == 0);
    inner = kj::AutoCloseFd(openat(inner, "d", O_RDONLY | O_DIRECTORY));
    kj::AutoCloseFd(openat(inner, "file", O_WRONLY | O_CREAT, 0600));
  }
  inner = nullptr;
  CHECK(state->remove().empty());
  CHECK(!fs::exists(state->path()));
}

TEST_CASE("the owner of a state directory is found while it lives") {
  Folder folder;
  folder.make("living");
  std::string dead = folder.make("dead", endedProcess())->path();
  fs::create_directory(folder.sessions + "/foreign");
  auto found = StateDirectory::all(folder.sessions, {});
  REQUIRE(found.size() == 2);
  for (auto& state : found) CHECK((state->livingOwner() == nullptr) == (state->path() == dead));
  CHECK(StateDirectory::all(folder.path + "/nothing", {}).empty());
}

TEST_CASE("a directory begun before the daemon's start that has no owner yet is removed if it is empty") {
  Folder folder;
  for (const char* name : {"empty", "half", "full"}) fs::create_directory(folder.sessions + "/" + name);
  std::ofstream(folder.sessions + "/half/owner.new") << "1 ";
  std::ofstream(folder.sessions + "/full/file") << "x";
  CHECK(StateDirectory::all(folder.sessions, {}).empty());  // of a time before all of them
  CHECK(fs::exists(folder.sessions + "/empty"));
  timespec later;
  clock_gettime(CLOCK_REALTIME, &later);
  ++later.tv_sec;
  CHECK(StateDirectory::all(folder.sessions, later).empty());
  CHECK(!fs::exists(folder.sessions + "/empty"));
  CHECK(!fs::exists(folder.sessions + "/half"));
  CHECK(fs::exists(folder.sessions + "/full/file"));
}

TEST_CASE("a later process with the same pid is not the owner") {
  Folder folder;
  auto state = folder.make("mine");
  std::ofstream(state->path() + "/owner") << getpid() << " 1\n";
  CHECK(state->livingOwner() == nullptr);
}

TEST_CASE("an owner that cannot be watched is not considered dead") {
  Folder folder;
  auto state = folder.make("mine");
  test::withRefusedCall(SYS_pidfd_open, EMFILE, [&] { CHECK_THROWS_AS(state->livingOwner(), kj::Exception); });
}

TEST_CASE("the next state of a session replaces one that a removal has left, and waits for one whose owner lives") {
  Folder folder;
  std::string left = folder.make("left", endedProcess())->path();
  std::ofstream(left + "/objects") << "x";
  fs::remove(left + "/owner");
  auto next = StateDirectory::makeNext(folder.sessions, "left", getpid());
  CHECK(next->livingOwner() != nullptr);
  CHECK(!fs::exists(left + "/objects"));
  folder.make("ended", endedProcess());
  CHECK(StateDirectory::makeNext(folder.sessions, "ended", getpid())->livingOwner() != nullptr);
  auto lives = folder.make("lives");
  std::thread removal([&] {
    usleep(1'500'000);
    lives->remove();
  });
  CHECK(StateDirectory::makeNext(folder.sessions, "lives", getpid())->livingOwner() != nullptr);
  removal.join();
}

TEST_CASE("a program that is called away gets a new state directory in the place of its former one, whose removal does not touch it") {
  Folder folder;
  auto former = folder.make("mine");
  std::ofstream(former->path() + "/objects") << "x";
  auto next = StateDirectory::makeAgain(folder.sessions, "mine", getpid());
  CHECK(next->livingOwner() != nullptr);
  CHECK(!fs::exists(next->path() + "/objects"));
  CHECK(former->remove().empty());  // by the daemon that waited for the program's end
  CHECK(fs::exists(next->path() + "/owner"));
  CHECK(StateDirectory::find(next->path(), "mine", getpid()) != nullptr);
  CHECK(StateDirectory::find(next->path(), "mine", getppid()) == nullptr);
  CHECK(StateDirectory::find(folder.sessions + "/nowhere", "nowhere", getpid()) == nullptr);
}

TEST_CASE("a state directory that cannot be made leaves no files") {
  Folder folder;
  folder.make("taken");
  CHECK_THROWS_AS(folder.make("taken"), kj::Exception);
  CHECK(fs::exists(folder.sessions + "/taken/owner"));
  CHECK_THROWS_AS(StateDirectory::make(folder.path + "/nothing", "new", getpid()), kj::Exception);
}

}  // namespace vgpu::daemon
