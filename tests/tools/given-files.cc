// Files that a program passes to its session's workers: the messages to its daemon, and the files that a daemon keeps.
#include "intercept/session/given-files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/async-io.h>
#include <kj/timer.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <future>
#include <map>
#include <thread>

#include "program-and-daemon.h"
#include "tools/vgpud/given-files.h"

namespace vgpu::client {
namespace {

kj::AutoCloseFd memoryFile() { return kj::AutoCloseFd(memfd_create("given", MFD_CLOEXEC)); }

ino_t inodeOf(int fd) {
  struct stat status {};
  REQUIRE(fstat(fd, &status) == 0);
  return status.st_ino;
}

// The name of the file in a message that passes it or takes it back.
SharedName nameIn(capnp::Data::Reader data) {
  SharedName name;
  REQUIRE(data.size() == sizeof name);
  std::memcpy(&name, data.begin(), sizeof name);
  return name;
}

// The name in the next message, which must pass a file with this inode.
SharedName hearGiven(Daemon& daemon, ino_t inode) {
  auto message = daemon.hear(1);
  REQUIRE(message.isGive());
  REQUIRE(daemon.heard->descriptors.size() == 1);
  CHECK(inodeOf(daemon.heard->descriptors[0]) == inode);
  return nameIn(message.getGive());
}

std::future<GivenFiles::File> giveAside(Program& program, int descriptor) {
  return std::async(std::launch::async, [&files = program.control->files(), descriptor] { return files.give(kj::AutoCloseFd(descriptor)); });
}

}  // namespace

TEST_CASE("a file is passed under one name however often it is given, and taken back when its last user releases it") {
  Program program;
  GivenFiles& files = program.control->files();
  CHECK(files.isEmpty());
  kj::AutoCloseFd memory = memoryFile(), again(dup(memory));
  const ino_t inode = inodeOf(memory);
  auto first = giveAside(program, memory.release());
  const SharedName name = hearGiven(*program.daemon, inode);
  GivenFiles::File file = first.get();
  REQUIRE(file != nullptr);
  CHECK(file->name == name);
  CHECK(inodeOf(file->fd()) == inode);
  GivenFiles::File same = files.give(kj::mv(again));
  CHECK(same == file);
  file = nullptr;
  CHECK(!files.isEmpty());
  same = nullptr;
  CHECK(files.isEmpty());
  CHECK(nameIn(program.daemon->hear().getTakeBack()) == name);
}

TEST_CASE("a readable and a writable descriptor of one file are two files, also with the same path") {
  Program program;
  kj::AutoCloseFd memory = memoryFile();
  kj::AutoCloseFd reader(open(("/proc/self/fd/" + std::to_string(memory.get())).c_str(), O_RDONLY | O_CLOEXEC));
  const ino_t inode = inodeOf(memory);
  auto first = giveAside(program, reader.release());
  const SharedName readOnly = hearGiven(*program.daemon, inode);
  auto file = first.get();
  auto second = giveAside(program, memory.release());
  CHECK(hearGiven(*program.daemon, inode) != readOnly);
  CHECK(second.get() != file);
}

TEST_CASE("a file is identified by the present inode of its descriptor, which differs in a restored process") {
  Program program;
  GivenFiles& files = program.control->files();
  kj::AutoCloseFd memory = memoryFile(), restored = memoryFile(), former(dup(memory));
  const ino_t inode = inodeOf(memory);
  auto first = giveAside(program, memory.release());
  const SharedName name = hearGiven(*program.daemon, inode);
  GivenFiles::File file = first.get();
  REQUIRE(dup3(restored, file->fd(), O_CLOEXEC) == file->fd());
  GivenFiles::File other = files.give(kj::mv(former));  // another file, which may have the same inode number
  REQUIRE(other != nullptr);
  REQUIRE(other != file);
  CHECK(hearGiven(*program.daemon, inode) == other->name);
  CHECK(other->name != name);
  CHECK(files.give(kj::mv(restored)) == file);
}

TEST_CASE("a descriptor that is not open is not passed") {
  Program program;
  CHECK(program.control->files().give({}) == nullptr);
  CHECK(program.control->files().isEmpty());
}

TEST_CASE("files are passed again to a daemon that resumes the session, together with those that were not passed before") {
  Program program;
  kj::AutoCloseFd memory = memoryFile(), later = memoryFile();
  const ino_t inode = inodeOf(memory), laterInode = inodeOf(later);
  auto first = giveAside(program, memory.release());
  const SharedName name = hearGiven(*program.daemon, inode);
  GivenFiles::File file = first.get();
  program.daemon->suspendTo("/snapshot");
  auto second = giveAside(program, later.release());
  CHECK(second.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);  // it waits for the session

  Daemon other = program.find("s1");
  auto open = other.hear(3).getOpen();
  REQUIRE(open.getFiles() == 2);
  std::map<ino_t, SharedName> names;
  for (int i = 0; i < 2; ++i) {
    auto message = other.hear(1);
    REQUIRE(other.heard->descriptors.size() == 1);
    names[inodeOf(other.heard->descriptors[0])] = nameIn(message.getGive());
  }
  CHECK(names.at(inode) == name);
  other.handOver();
  CHECK(hearGiven(other, laterInode) == names.at(laterInode));  // again, for a daemon that was not sent it meanwhile
  CHECK(second.get()->name == names.at(laterInode));
}

TEST_CASE("a lost session accepts no files, and wakes threads that wait") {
  Program program;
  program.daemon->suspendTo("/snapshot");
  auto waiting = giveAside(program, memoryFile().release());
  program.daemon->say([](control::ToSession::Builder message) { message.setLost("it burned"); });
  CHECK(waiting.get() == nullptr);
  CHECK(program.control->files().give(memoryFile()) == nullptr);
  CHECK(program.control->files().isEmpty());
}

TEST_CASE("once a program has left its host no file is passed, and it does not leave while one is") {
  Program program;
  GivenFiles& files = program.control->files();
  GivenFiles::File file = files.give(memoryFile());
  REQUIRE(file != nullptr);
  CHECK(!files.close());
  CHECK(!files.isClosed());
  CHECK(files.give(kj::AutoCloseFd(dup(file->fd()))) == file);
  CHECK(files.give(memoryFile()) != nullptr);
  file = nullptr;
  CHECK(files.close());
  CHECK(files.isClosed());
  CHECK(files.give(memoryFile()) == nullptr);
  CHECK(files.isEmpty());
}

TEST_CASE("a program passes at most as many files as a daemon keeps, and others after it has taken some back") {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 2 * control::MOST_FILES) {
    MESSAGE("skipped: a process here may have too few descriptors");
    return;
  }
  Program program;
  GivenFiles& files = program.control->files();
  std::thread daemon([&] {
    while (auto message = program.daemon->channel.receive(1))
      if (message->reader->getRoot<control::ToNode>().isGateClosed()) break;
  });
  std::vector<GivenFiles::File> given;
  for (uint32_t i = 0; i < control::MOST_FILES; ++i) given.push_back(files.give(memoryFile()));
  CHECK(std::ranges::count(given, nullptr) == 0);
  CHECK(files.give(memoryFile()) == nullptr);
  CHECK(files.give(kj::AutoCloseFd(dup(given[7]->fd()))) == given[7]);
  given.pop_back();
  CHECK(files.give(memoryFile()) != nullptr);
  given.clear();
  CHECK(files.isEmpty());
  program.daemon->say([](control::ToSession::Builder message) { message.setCloseGate(); });
  daemon.join();
}

TEST_CASE("threads pass and release the same files at once, and each file exists while it is used") {
  Program program;
  std::thread daemon([&] {
    std::map<SharedName, int> known;
    while (auto message = program.daemon->channel.receive(1)) {
      auto said = message->reader->getRoot<control::ToNode>();
      if (said.isGive()) ++known[nameIn(said.getGive())];
      if (said.isTakeBack()) CHECK(--known[nameIn(said.getTakeBack())] == 0);
      if (said.isGateClosed()) break;
    }
    CHECK(std::ranges::count_if(known, [](auto& each) { return each.second != 0; }) == 1);
  });
  std::array<kj::AutoCloseFd, 3> memories{memoryFile(), memoryFile(), memoryFile()};
  std::vector<std::thread> threads;
  for (size_t number = 0; number < 4; ++number)
    threads.emplace_back([&, number] {
      for (size_t i = 0; i < 200; ++i) {
        auto file = program.control->files().give(kj::AutoCloseFd(dup(memories[(number + i) % memories.size()])));
        REQUIRE(file != nullptr);
        CHECK(inodeOf(file->fd()) == inodeOf(memories[(number + i) % memories.size()]));
      }
    });
  for (auto& thread : threads) thread.join();
  auto last = program.control->files().give(memoryFile());  // returns when all earlier changes have been sent
  CHECK(last != nullptr);
  program.daemon->say([](control::ToSession::Builder message) { message.setCloseGate(); });
  daemon.join();
}

}  // namespace vgpu::client

namespace vgpu::daemon {
namespace {

SharedName named(kj::byte first) { return {first}; }

// One end of a connection whose close() blocks until the other end has been read.
struct UnreadSocket {
  kj::AutoCloseFd end, other;

  UnreadSocket() {
    sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t bytes = sizeof address;
    auto* name = reinterpret_cast<sockaddr*>(&address);
    kj::AutoCloseFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(bind(listener, name, bytes) == 0);
    REQUIRE(listen(listener, 1) == 0);
    REQUIRE(getsockname(listener, name, &bytes) == 0);
    end = kj::AutoCloseFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(connect(end, name, bytes) == 0);
    other = kj::AutoCloseFd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    const linger untilRead{.l_onoff = 1, .l_linger = 1000};
    REQUIRE(setsockopt(end, SOL_SOCKET, SO_LINGER, &untilRead, sizeof untilRead) == 0);
    std::array<char, 1 << 16> content{};
    while (send(end, content.data(), content.size(), MSG_DONTWAIT) > 0) {}
    REQUIRE(errno == EAGAIN);
  }
  // Reads until the end, which comes when `end` is closed.
  void read() const {
    std::array<char, 1 << 16> content;
    while (::read(other, content.data(), content.size()) > 0) {}
  }
};

struct Kept {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  kj::TimerImpl timer{kj::origin<kj::TimePoint>()};
  std::shared_ptr<GivenFiles> files = std::make_shared<GivenFiles>(timer);

  ino_t find(const SharedName& name) {
    auto file = files->find(name).wait(io.waitScope);
    return file == nullptr ? 0 : client::inodeOf(file->fd());
  }
};

}  // namespace

TEST_CASE("a daemon keeps a program's files by name, the latest of each name, until they are taken back") {
  Kept kept;
  auto first = client::memoryFile(), second = client::memoryFile();
  const ino_t firstInode = client::inodeOf(first), secondInode = client::inodeOf(second);
  kept.files->put(named(1), kj::mv(first));
  CHECK(kept.find(named(1)) == firstInode);
  kept.files->put(named(1), kj::mv(second));
  CHECK(kept.find(named(1)) == secondInode);
  kept.files->remove(named(1));
  kept.files->remove(named(1));
  kept.files->put(named(2), client::memoryFile());
  CHECK(kept.find(named(2)) != 0);
}

TEST_CASE("a worker that asks for a file before it arrives waits for it") {
  Kept kept;
  auto found = kept.files->find(named(1)), forgotten = kept.files->find(named(1));
  CHECK(!found.poll(kept.io.waitScope));
  forgotten = nullptr;
  auto file = client::memoryFile();
  const ino_t inode = client::inodeOf(file);
  kept.files->put(named(2), client::memoryFile());
  CHECK(!found.poll(kept.io.waitScope));
  kept.files->put(named(1), kj::mv(file));
  CHECK(client::inodeOf(found.wait(kept.io.waitScope)->fd()) == inode);
}

TEST_CASE("the wait for a file that does not arrive is limited to some seconds") {
  Kept kept;
  auto found = kept.files->find(named(1));
  kept.timer.advanceTo(kj::origin<kj::TimePoint>() + 9 * kj::SECONDS);
  CHECK(!found.poll(kept.io.waitScope));
  kept.timer.advanceTo(kj::origin<kj::TimePoint>() + 11 * kj::SECONDS);
  CHECK(found.wait(kept.io.waitScope) == nullptr);
}

TEST_CASE("releasing a file does not wait for its close, which may block on another process") {
  std::array<UnreadSocket, 3> sockets;
  std::promise<void> letGo;
  bool waited = false;
  std::thread reader([&, isLetGo = letGo.get_future()] {
    waited = isLetGo.wait_for(std::chrono::seconds(20)) == std::future_status::timeout;  // a limit against hanging
    for (auto& socket : sockets) socket.read();
  });
  {
    Kept kept;
    kept.files->put(named(1), kj::mv(sockets[0].end));
    kept.files->put(named(1), kj::mv(sockets[1].end));  // replaces the first
    kept.files->remove(named(1));
    kept.files->put(named(2), kj::mv(sockets[2].end));
  }
  letGo.set_value();
  reader.join();
  CHECK_FALSE(waited);
}

TEST_CASE("a daemon keeps a limited number of files for one session") {
  Kept kept;
  for (size_t i = 0; i < GivenFiles::most; ++i) kept.files->put({static_cast<kj::byte>(i), static_cast<kj::byte>(i >> 8)}, {});
  CHECK_THROWS_AS(kept.files->put({0, 0, 1}, {}), kj::Exception);
}

}  // namespace vgpu::daemon
