#include <doctest/doctest.h>
#include <kj/function.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "../scratch-directory.h"
#include "vgpu/control/unix-socket.h"

namespace vgpu {
namespace {

namespace fs = std::filesystem;

std::string messageOf(kj::FunctionParam<void()> work) {
  auto caught = kj::runCatchingExceptions([&] { work(); });
  KJ_IF_MAYBE (exception, caught) {
    return exception->getDescription().cStr();
  }
  return "";
}

void expectConversation(int listener, int client) {
  kj::AutoCloseFd server(accept(listener, nullptr, nullptr));
  REQUIRE(server.get() >= 0);
  CHECK(write(client, "x", 1) == 1);
  char got = 0;
  CHECK(read(server, &got, 1) == 1);
  CHECK(got == 'x');
  CHECK(peerOf(server).pid == getpid());
  CHECK(peerOf(client).uid == geteuid());
  CHECK(isTrusted(peerOf(server)));
}

}  // namespace

TEST_CASE("a socket file is accessible to its owner only") {
  test::ScratchDirectory folder("/tmp");
  kj::AutoCloseFd listener = listenUnix(folder.path + "/s");
  struct stat status;
  REQUIRE(stat((folder.path + "/s").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  kj::AutoCloseFd client = connectUnix(folder.path + "/s");
  expectConversation(listener, client);
}

TEST_CASE("a path longer than a socket address works, unless the name alone is") {
  test::ScratchDirectory folder("/tmp");
  std::string deep = folder.path + "/" + std::string(150, 'd') + "/" + std::string(150, 'e');
  fs::create_directories(deep);
  kj::AutoCloseFd listener = listenUnix(deep + "/s");
  kj::AutoCloseFd client = connectUnix(deep + "/s");
  expectConversation(listener, client);
  std::string tooLong = deep + "/" + std::string(120, 'n');
  CHECK(messageOf([&] { listenUnix(tooLong); }).find("too long") != std::string::npos);
}

TEST_CASE("a socket whose listener has ended is distinguished from one that never existed") {
  test::ScratchDirectory folder("/tmp");
  CHECK(messageOf([&] { connectUnix(folder.path + "/s"); }).find("there is no socket") != std::string::npos);
  { kj::AutoCloseFd listener = listenUnix(folder.path + "/s"); }
  CHECK(messageOf([&] { connectUnix(folder.path + "/s"); }).find("nobody listens") != std::string::npos);
  CHECK(messageOf([&] { listenUnix(folder.path + "/s"); }).find("cannot make the socket") != std::string::npos);
}

}  // namespace vgpu
