// The program's side of the control plane, against daemons played by the test.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "intercept/session/failure.h"
#include "program-and-daemon.h"
#include "vgpu/control/parked-program.h"

namespace vgpu::client {
namespace {

// A child process that acts as a parked program of session s7, and runs `does`.
class ParkedChild {
 public:
  explicit ParkedChild(const std::function<void(const ParkingPlace&)>& does) {
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    process = fork();
    if (process == 0) {
      ParkingPlace place("s7");
      if (write(ready[1], "", 1) == 1) does(place);
      _exit(0);
    }
    char byte;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    for (int end : ready) close(end);
    parked = ParkedProgram::find(process, "s7");
    REQUIRE(parked);
  }
  ParkedChild(const ParkedChild&) = delete;
  ~ParkedChild() {
    if (process == 0) return;
    kill(process, SIGKILL);
    reap();
  }

  // Ends the process without reaping it.
  void end() {
    kill(process, SIGKILL);
    siginfo_t ended;
    REQUIRE(waitid(P_PID, static_cast<id_t>(process), &ended, WEXITED | WNOWAIT) == 0);
  }
  void reap() { waitpid(std::exchange(process, 0), nullptr, 0); }

  std::optional<ParkedProgram> parked;

 private:
  pid_t process = 0;
};

}  // namespace

TEST_CASE("a program gets its session's id and the directory of its object list") {
  Program program;
  CHECK(program.control->session() == "s1");
  CHECK(program.control->directory() == program.node.path);
}

TEST_CASE("a daemon's refusal becomes the program's error, word for word") {
  Node node;
  std::thread daemon([&] {
    Daemon refusing = node.accept();
    refusing.hear(1);
    refusing.say([](control::ToSession::Builder message) { message.setRefused("no room in here"); });
  });
  auto caught = kj::runCatchingExceptions([&] { Control::open({node.path, "n", "/p"}); });
  daemon.join();
  KJ_IF_MAYBE (exception, caught) {
    CHECK(std::string(exception->getDescription().cStr()).find("no room in here") != std::string::npos);
  } else {
    FAIL("a refused session was opened");
  }
}

TEST_CASE("a refusal because of invalid devices is a separate error") {
  Node node;
  std::thread daemon([&] {
    Daemon refusing = node.accept();
    refusing.hear(1);
    refusing.say([](control::ToSession::Builder message) { message.setRefused("one twice"), message.setInvalidDevice(true); });
  });
  CHECK_THROWS_WITH_AS(Control::open({node.path, "n", "/p"}), "vgpud refused the session: one twice", InvalidDevices);
  daemon.join();
}

TEST_CASE("a session without its memory is refused") {
  Node node;
  std::thread daemon([&] {
    Daemon poor = node.accept();
    poor.hear(1);
    poor.sayOpened("s1", "/state");
  });
  auto caught = kj::runCatchingExceptions([&] { Control::open({node.path, "n", "/p"}); });
  daemon.join();
  CHECK(caught != nullptr);
}

TEST_CASE("the gate is closed and opened on a thread that takes no signals") {
  Program program;
  program.daemon->say([](control::ToSession::Builder message) { message.setCloseGate(); });
  CHECK(program.daemon->hear().getGateClosed().getPosition() == 42);
  CHECK(program.session.allSignalsBlocked);
  program.daemon->say([](control::ToSession::Builder message) { message.setOpenGate(); });
  CHECK(program.session.until("open") == std::vector<std::string>{"close", "open"});
}

TEST_CASE("a gate that cannot be closed is refused with the reason, and the next request is served") {
  Program program;
  program.session.refuses = true;
  program.daemon->say([](control::ToSession::Builder message) { message.setCloseGate(); });
  CHECK(std::string(program.daemon->hear().getRefused().cStr()).find("not now") != std::string::npos);
  program.session.refuses = false;
  program.daemon->say([](control::ToSession::Builder message) { message.setCloseGate(); });
  CHECK(program.daemon->hear().isGateClosed());
}

TEST_CASE("a running program that loses its daemon gets an error") {
  Program program;
  program.daemon.reset();
  CHECK(program.session.until("lose").size() == 1);
}

TEST_CASE("a program whose gate is closed waits for a resume if its daemon has ended") {
  Program program;
  program.daemon->say([](control::ToSession::Builder message) { message.setCloseGate(); });
  CHECK(program.daemon->hear().isGateClosed());
  program.daemon.reset();
  Daemon other = program.find("s1");
  CHECK(other.hear(4).isOpen());
  other.handOver();
  CHECK(program.session.until("open") == std::vector<std::string>{"close", "open"});
}

TEST_CASE("a program whose gate was closed for a suspend that never came loses its session in the end") {
  setenv("VGPU_REATTACH_LIMIT", "0", 1);
  Program program;
  unsetenv("VGPU_REATTACH_LIMIT");
  program.daemon->say([](control::ToSession::Builder message) { message.setCloseGate(); });
  CHECK(program.daemon->hear().isGateClosed());
  program.daemon.reset();
  CHECK(program.session.until("lose").size() == 2);
}

TEST_CASE("the reason for a lost worker reaches the program") {
  Program program;
  program.daemon->say([](control::ToSession::Builder message) { message.setLost("it burned"); });
  CHECK(program.session.until("lose").back() == "lose: it burned");
}

TEST_CASE("a suspended program continues under the daemon that finds it, and leaves the old one") {
  Program program;
  program.daemon->suspendTo("/snapshot");
  Daemon other = program.find("s1");
  auto open = other.hear(3).getOpen();
  CHECK(std::string(open.getSession().cStr()) == "s1");
  REQUIRE(other.heard->descriptors.size() == 3);
  struct stat passed, made;
  CHECK(fstat(other.heard->descriptors[2], &passed) == 0);
  CHECK(stat(program.node.path.c_str(), &made) == 0);
  CHECK(passed.st_ino == made.st_ino);
  other.say([](control::ToSession::Builder message) { message.setWorking(); });
  other.handOver();
  CHECK(program.session.until("open") == std::vector<std::string>{"close", "open"});
  CHECK(program.daemon->hear().isMoved());
  CHECK(program.daemon->isClosed());

  other.suspendTo("/snapshot-2");
  Daemon third = program.find("s1");
  CHECK(third.hear(4).isOpen());
}

TEST_CASE("a suspended program needs no daemon and waits through failed resumes") {
  Program program;
  program.daemon->suspendTo("/snapshot");
  program.daemon.reset();
  {
    Daemon refusing = program.find("s1");
    CHECK(refusing.hear(4).isOpen());
    refusing.say([](control::ToSession::Builder message) { message.setRefused("a chunk is damaged"); });
    CHECK(refusing.isClosed());
  }
  {
    Daemon dying = program.find("s1");
    CHECK(dying.hear(4).isOpen());
  }
  {
    kj::AutoCloseFd garbage = connectUnix(program.reattach);
    CHECK(send(garbage, "no message at all", 17, MSG_NOSIGNAL) == 17);
  }
  Daemon wrong = program.find("s2");
  CHECK(std::string(wrong.hear().getRefused().cStr()).find("session is s1, not s2") != std::string::npos);
  Daemon right = program.find("s1");
  CHECK(right.hear(4).isOpen());
  right.handOver();
  CHECK(program.session.until("open") == std::vector<std::string>{"close", "open"});
}

TEST_CASE("a parked program keeps nothing of its node, and continues in the directory that it is called to") {
  Program program;
  program.daemon->suspendTo("/snapshot");
  program.daemon->say([](control::ToSession::Builder message) { message.setPark(); });
  CHECK(program.daemon->hear().isParked());
  CHECK(program.daemon->isClosed());
  CHECK_THROWS(connectUnix(program.reattach));
  CHECK_FALSE(ParkedProgram::find(getpid(), "s2"));
  auto parked = ParkedProgram::find(getpid(), "s1");
  REQUIRE(parked);

  test::ScratchDirectory other("/tmp");
  program.session.refuses = true;
  CHECK_THROWS(parked->attach(other.path, "s1", std::chrono::seconds(10)));
  program.session.refuses = false;
  CHECK_THROWS(parked->attach(other.path + "/nowhere", "s1", std::chrono::seconds(10)));
  CHECK_FALSE(parked->isIn(other.path));
  parked->attach(other.path, "s1", std::chrono::seconds(10));
  CHECK(parked->isIn(other.path));
  {
    test::ScratchDirectory away("/tmp");  // of a daemon that ended before it could resume the program
    ParkedProgram::find(getpid(), "s1")->attach(away.path, "s1", std::chrono::seconds(10));
  }
  CHECK_FALSE(parked->isIn(other.path));
  unlink((other.path + "/" + reattachSocketName).c_str());
  parked->attach(other.path, "s1", std::chrono::seconds(10));
  Daemon next(connectUnix(other.path + "/" + reattachSocketName));
  next.say([](control::ToSession::Builder message) { message.setReattach("s1"); });
  CHECK(next.hear(3).isOpen());
  struct stat passed, made;
  CHECK(fstat(next.heard->descriptors[2], &passed) == 0);
  CHECK(stat(other.path.c_str(), &made) == 0);
  CHECK(passed.st_ino == made.st_ino);
  next.handOver();
  auto events = program.session.until("open");
  CHECK(events.front() == "close");
  CHECK(events[events.size() - 2] == "enter " + other.path);
  parked.reset();  // the fixture's program has the file open, in this process
  CHECK_FALSE(ParkedProgram::find(getpid(), "s1"));
}

TEST_CASE("a parked program that is stopped while it is called continues later") {
  ParkedChild child([](const ParkingPlace& place) {
    while (!place.called()) usleep(1000);
    raise(SIGSTOP);
    place.attached();
    pause();
  });
  CHECK_NOTHROW(child.parked->attach("/tmp", "s7", std::chrono::seconds(10)));
}

TEST_CASE("a parked program that has ended is not waited for, even if its parent has not reaped it") {
  ParkedChild child([](const ParkingPlace&) { pause(); });
  child.end();
  for (bool isReaped : {false, true}) {
    if (isReaped) child.reap();
    auto failure = kj::runCatchingExceptions([&] { child.parked->attach("/tmp", "s7", std::chrono::seconds(10)); });
    KJ_IF_MAYBE (exception, failure) {
      CHECK(std::string(exception->getDescription().cStr()).find("has ended") != std::string::npos);
    } else {
      FAIL("it was attached");
    }
  }
}

TEST_CASE("a program that is not suspended to disk is not parked") {
  Program program;
  auto park = [](control::ToSession::Builder message) { message.setPark(); };
  program.daemon->say(park);
  CHECK(std::string(program.daemon->hear().getRefused().cStr()).find("not suspended to disk") != std::string::npos);
  program.daemon->say([](control::ToSession::Builder message) { message.setCloseGate(); });
  CHECK(program.daemon->hear().isGateClosed());
  program.daemon->say([](control::ToSession::Builder message) { message.setSuspendedInMemory("/memory"); });
  program.daemon->say(park);
  CHECK(program.daemon->hear().isRefused());
  CHECK_FALSE(ParkedProgram::find(getpid(), "s1"));
}

TEST_CASE("if a daemon ends after it offered the session, the program stays suspended and another daemon can resume it") {
  Program program;
  program.daemon->suspendTo("/snapshot");
  for (bool refuses : {false, true}) {
    Daemon dying = program.find("s1");
    CHECK(dying.hear(4).isOpen());
    dying.sayOpened("s1", "");
    CHECK(dying.hear().isAccepted());
    if (!refuses) continue;
    dying.say([](control::ToSession::Builder message) { message.setRefused("the worker burned"); });
    CHECK(dying.isClosed());
  }
  Daemon other = program.find("s1");
  CHECK(other.hear(4).isOpen());
  other.handOver();
  CHECK(program.session.until("open") == std::vector<std::string>{"close", "open"});
}

TEST_CASE("if a daemon ends after its worker has claimed the session, the session is lost") {
  Program program;
  program.daemon->suspendTo("/snapshot");
  {
    Daemon dying = program.find("s1");
    CHECK(dying.hear(4).isOpen());
    dying.sayOpened("s1", "");
    CHECK(dying.hear().isAccepted());
    program.session.claimed = true;
  }
  CHECK(program.session.until("lose").size() == 2);
}

TEST_CASE("two daemons cannot resume one program at the same time") {
  Program program;
  program.daemon->suspendTo("/snapshot");
  Daemon first = program.find("s1");
  CHECK(first.hear(4).isOpen());
  Daemon second = program.find("s1");
  CHECK(std::string(second.hear().getRefused().cStr()).find("is being resumed by another") != std::string::npos);
  first.handOver();
  CHECK(program.session.until("open") == std::vector<std::string>{"close", "open"});
}

TEST_CASE("a resume that was given up does not prevent the next one, however many messages it sent") {
  Program program;
  program.daemon->suspendTo("/snapshot");
  Daemon first = program.find("s1");
  CHECK(first.hear(4).isOpen());
  std::optional<Daemon> second;
  program.session.onAccept = [&] {  // the program reads again when all this has arrived
    if (second) return;
    first.say([](control::ToSession::Builder message) { message.setWorking(); });
    first.say([](control::ToSession::Builder message) { message.setRefused("a chunk is damaged"); });
    second.emplace(program.find("s1"));
  };
  first.sayOpened("s1", "");
  CHECK(first.hear().isAccepted());
  CHECK(first.isClosed());
  CHECK(second->hear(4).isOpen());
  second->handOver();
  CHECK(program.session.until("open") == std::vector<std::string>{"close", "open"});
}

TEST_CASE("a program stays if its daemon says so, although the daemon that it would move to has also sent messages") {
  Program program;
  program.daemon->say([](control::ToSession::Builder message) { message.setCloseGate(); });
  CHECK(program.daemon->hear().isGateClosed());
  program.daemon->say([](control::ToSession::Builder message) { message.setMoving(); });
  Daemon other = program.find("s1");
  CHECK(other.hear(4).isOpen());
  program.session.onAccept = [&] {  // the program reads again when both have arrived
    program.daemon->say([](control::ToSession::Builder message) { message.setStay(); });
    other.say([](control::ToSession::Builder message) { message.setWorking(); });
  };
  other.sayOpened("s1", "");
  CHECK(other.hear().isAccepted());
  CHECK(program.daemon->hear().isGateClosed());
  CHECK(other.isClosed());
  program.daemon->say([](control::ToSession::Builder message) { message.setOpenGate(); });
  CHECK(program.session.until("open") == std::vector<std::string>{"close", "open"});
}

TEST_CASE("a running program is not taken from its daemon") {
  Program program;
  Daemon thief = program.find("s1");
  CHECK(std::string(thief.hear().getRefused().cStr()).find("not suspended") != std::string::npos);
  program.daemon->say([](control::ToSession::Builder message) { message.setCloseGate(); });
  CHECK(program.daemon->hear().isGateClosed());
}

TEST_CASE("a program that ends in the middle of an exchange ends it") {
  Program program;
  program.daemon->suspendTo("/snapshot");
  Daemon other = program.find("s1");
  CHECK(other.hear(4).isOpen());
  program.control.reset();
  CHECK(other.isClosed());
}

TEST_CASE("a child of fork() leaves the session, whichever of its descriptors it has inherited") {
  Program program;
  pid_t child = fork();
  if (child == 0) {
    close_range(3, ~0u, 0);  // as if the control thread had opened them between the two parts of fork()
    bool failed = kj::runCatchingExceptions([&] { program.control->leave(); }) != nullptr;
    _exit(failed ? 1 : 0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  program.daemon->say([](control::ToSession::Builder message) { message.setCloseGate(); });
  CHECK(program.daemon->hear().isGateClosed());
}

}  // namespace vgpu::client
