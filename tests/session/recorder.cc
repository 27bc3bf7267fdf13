#include "intercept/session/recorder.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

namespace vgpu::client {
namespace {

constexpr size_t frameBytes = 4096;
constexpr size_t framesQueued = Recorder::mostQueuedBytes / frameBytes;

RecordedFrame frame(uint64_t position) {
  return {{position, position, 0, 0, api::Method::memAlloc, 0}, kj::heapArray<capnp::word>(frameBytes / sizeof(capnp::word))};
}

// Static storage: the recorder's thread lives as long as the process, and so must what it uses.
template <typename List>
struct Recording {
  List& list = *new List;
  Recorder& recorder = *new Recorder(std::unique_ptr<ObjectList>(&list), [] { return RingCut(0); });
};

// A list that has no file, so there is nothing to move.
class UnwrittenList : public ObjectList {
 public:
  void leave() override {}
  void enter(const std::string&) override {}
};

// A disk whose first commit ends only after the program had to wait for it, if the program waits at all.
class SlowList final : public UnwrittenList {
 public:
  void apply(RecordedFrame) override { ++applied; }
  void commit(const RingCut&) override {
    while (added < framesQueued / 2) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(wasSlow ? 0 : 100));
    if (!wasSlow) addedMeanwhile = added.load();
    wasSlow = true;
  }
  size_t size() const override { return applied; }

  std::atomic<size_t> added{0};
  size_t applied = 0, addedMeanwhile = 0;
  bool wasSlow = false;
};

class FullList final : public UnwrittenList {
 public:
  void apply(RecordedFrame) override {}
  void commit(const RingCut&) override {
    if (isFull) KJ_FAIL_REQUIRE("the disk is full");
  }
  size_t size() const override { return 0; }

  std::atomic<bool> isFull{true};
};

// Captures stderr while it lives.
class Captured {
 public:
  Captured() : before(dup(STDERR_FILENO)) { dup2(fileno(file), STDERR_FILENO); }
  ~Captured() {
    dup2(before, STDERR_FILENO);
    close(before);
    fclose(file);
  }
  size_t count(const std::string& text) {
    rewind(file);
    std::string all(1 << 16, '\0');
    all.resize(fread(all.data(), 1, all.size(), file));
    size_t found = 0;
    for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++found;
    return found;
  }

 private:
  FILE* file = tmpfile();
  int before;
};

bool flushes(Recorder& recorder) {
  return kj::runCatchingExceptions([&] { recorder.flush([] { return false; }); }) == nullptr;
}

void add(Recorder& recorder, const RecordedFrame& frame) { recorder.add(frame, frame.words); }

}  // namespace

TEST_CASE("a program that makes objects faster than the disk takes them waits") {
  Recording<SlowList> recording;
  constexpr size_t frames = 6 * framesQueued;
  for (size_t i = 0; i < frames; ++i) {
    add(recording.recorder, frame(i));
    ++recording.list.added;
  }
  CHECK(flushes(recording.recorder));
  CHECK(recording.list.applied == frames);
  CHECK(recording.list.addedMeanwhile <= 2 * framesQueued + 2);  // the batch being written and a full queue
}

TEST_CASE("a program whose object list cannot be written gets one message, and every flush fails") {
  Recording<FullList> recording;
  size_t reported;
  {
    Captured captured;
    add(recording.recorder, frame(1));
    CHECK_FALSE(flushes(recording.recorder));
    add(recording.recorder, frame(2));
    CHECK_FALSE(flushes(recording.recorder));
    reported = captured.count("cannot be suspended while its object list cannot be written");
    recording.list.isFull = false;
    CHECK(flushes(recording.recorder));
  }
  CHECK(reported == 1);
}

}  // namespace vgpu::client
