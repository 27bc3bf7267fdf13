// A program that opens a session and makes no CUDA call: tests the control plane alone.
//
//   session-double [NAME]
//
// Prints one line for each event: "opened ID DIRECTORY", "gate closed", "gate open", "lost: WHY". At SIGUSR1 it asks for a new worker:
// "renewed", or "not renewed: WHY". Ends at SIGTERM with code 0, and with code 3 when its session is lost, unless DOUBLE_STAYS=1. With
// DOUBLE_REFUSES=1 it refuses to close its gate; with DOUBLE_FORKS=1 it leaves a child that sleeps. DOUBLE_GARBAGE=N overwrites its ring
// with random bytes of seed N once it has its session.
#include <fcntl.h>
#include <kj/debug.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>

#include "intercept/session/control.h"
#include "vgpu/objects/object-list.h"
#include "vgpu/wire/handover.h"
#include "vgpu/wire/ring.h"

namespace {

using namespace vgpu;
using namespace vgpu::client;

class Double final : public SessionControl {
 public:
  uint64_t closeGate(const std::function<bool()>&) override {
    if (std::getenv("DOUBLE_REFUSES") != nullptr) KJ_FAIL_REQUIRE("this double keeps its gate open");
    say("gate closed");
    return 0;
  }
  void openGate() override { say("gate open"); }
  uint64_t accept() override { return handover = acceptHandover(segment->header().handover, handover); }
  bool withdraw(uint64_t number) override { return withdrawHandover(segment->header().handover, number); }
  std::string comeApart(const std::function<bool()>&) override { return "it is a double"; }
  void leaveHost() override {}
  void leaveFiles() override { objects->leave(); }
  void enterFiles(const std::string& directory) override { objects->enter(directory); }
  void lose(const std::string& why) override {
    say("lost: " + why);
    if (std::getenv("DOUBLE_STAYS") == nullptr) _exit(3);
  }

  std::optional<Segment> segment;
  std::unique_ptr<ObjectList> objects;
  uint64_t handover = 0;

  static void say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }
};

// What a hostile program can do to its worker: write anything to the memory that they share.
void fillRing(const MemoryFile& file, unsigned long seed) {
  Segment segment(file);
  std::mt19937_64 random(seed);
  for (uint64_t at = 0; at < ringBytes; at += sizeof(uint64_t)) {
    uint64_t bytes = random();
    std::memcpy(segment.ringAt(0, at), &bytes, sizeof bytes);
  }
  // The first frame has a valid sequence number and size, so that the worker reads the bytes behind them.
  RingWriter writer(segment);
  std::atomic<bool> abandoned{false};
  if (seed % 2 == 0) writer.publish(*writer.reserve(500, abandoned), api::Method::launchKernel, 3);
}

void run(const char* name) {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGTERM, SIGUSR1}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const char* node = std::getenv("VGPU_NODE");
  KJ_REQUIRE(node != nullptr, "VGPU_NODE must name a run directory");
  Double served;
  auto control = Control::open({node, name, "session-double"});
  served.objects = ObjectList::open(control->directory());
  served.objects->commit();  // an empty list, as of a program that has made no objects yet
  Double::say("opened " + control->session() + " " + control->directory());
  served.segment.emplace(control->segment());
  control->serve(served);
  if (std::getenv("DOUBLE_FORKS") != nullptr && fork() == 0) {
    control->leave();
    pause();
  }
  if (const char* seed = std::getenv("DOUBLE_GARBAGE")) fillRing(control->segment(), std::stoul(seed));
  for (int signal; sigwait(&signals, &signal) == 0 && signal == SIGUSR1;) {
    std::string why = control->renew();
    Double::say(why.empty() ? "renewed" : "not renewed: " + why);
  }
}

}  // namespace

int main(int argc, char** argv) {
  auto caught = kj::runCatchingExceptions([&] { run(argc > 1 ? argv[1] : "double"); });
  KJ_IF_MAYBE (exception, caught) {
    std::fprintf(stderr, "session-double: %s\n", exception->getDescription().cStr());
    return 1;
  }
  return 0;
}
