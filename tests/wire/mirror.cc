// A mirrored session: frames and bytes that a program writes to its segment reach the worker's segment, and what worker and GPU write comes
// back, also if connections break at any byte.
#include <doctest/doctest.h>
#include <kj/exception.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <thread>

#include "cuda-frames.h"
#include "link-pair.h"
#include "vgpu/api/place.h"
#include "vgpu/wire/program-mirror.h"
#include "vgpu/wire/ring.h"
#include "vgpu/wire/worker-mirror.h"

using namespace vgpu;

namespace {

const std::atomic<bool> never{false};

struct Mirrored {
  MemoryFile programFile = Segment::create(), workerFile = Segment::create();
  Segment program{programFile}, worker{workerFile};
  LinkPair pair;
  ProgramMirror atProgram{program, pair.a};
  WorkerMirror atWorker{worker, pair.b};
  RingWriter writer{program};
  RingReader reader{worker, 0};

  void apply() {
    bool known = true;
    pair.deliver([&](const LinkMessage& message) { known &= atProgram.apply(message); },
                 [&](const LinkMessage& message) { known &= atWorker.apply(message); });
    REQUIRE(known);
  }
  // Moves messages until both sides have nothing to send.
  void settle() {
    bool any = true;
    while (any) {
      any = atProgram.send() | atWorker.send();
      pair.move(SIZE_MAX, SIZE_MAX);
      apply();
    }
  }

  template <typename Params>
  uint64_t post(api::Method method, uint16_t slot, const std::function<void(api::FrameBuilder<Params>&)>& fill,
                RingWriter* ring = nullptr) {
    auto place = *(ring == nullptr ? writer : *ring).reserve(api::FrameBuilder<Params>::words, never);
    std::vector<capnp::word> words(api::FrameBuilder<Params>::words);
    api::FrameBuilder<Params> frame(kj::arrayPtr(words.data(), words.size()));
    fill(frame);
    std::memcpy(place.body(), words.data(), words.size() * sizeof(capnp::word));
    (ring == nullptr ? writer : *ring).publish(place, method, slot);
    return place.sequence();
  }
  uint64_t ask(uint16_t slot) {
    return post<api::Cuda::MemGetInfoParams>(api::Method::memGetInfo, slot, [](auto&) {});
  }
  uint64_t synchronize(uint16_t slot) {
    return post<api::Cuda::CtxSynchronizeParams>(api::Method::ctxSynchronize, slot, [](auto&) {});
  }
  // The worker's reply to a call.
  void complete(uint16_t slot, uint64_t sequence, int32_t result, const std::vector<uint64_t>& reply = {}) {
    worker.slot(slot).result = result;
    worker.slot(slot).replyWords = static_cast<uint32_t>(reply.size());
    std::ranges::copy(std::as_bytes(std::span(reply)), worker.reply(slot));
    worker.slot(slot).done.store(sequence);
  }
};

}  // namespace

TEST_CASE("frames reach the worker in order, and its tail frees space in the program's ring") {
  Mirrored both;
  for (uint64_t round = 0, position = 0; round < 3000; ++round) {
    for (int i = 0; i < 40; ++i) both.ask(static_cast<uint16_t>(i));
    both.settle();
    for (int i = 0; i < 40; ++i) {
      auto frame = both.reader.next();
      REQUIRE(frame);
      REQUIRE(frame->position == position);
      REQUIRE(frame->slot == i);
      position += frame->bytes;
      both.reader.release();
      both.complete(static_cast<uint16_t>(i), frame->sequence(), 0);
    }
    both.settle();
    REQUIRE(both.program.ring(0).tail.load() == position);
  }
  CHECK(both.atProgram.isDrained());
  CHECK_FALSE(both.atWorker.isExpecting());
}

TEST_CASE("a reply's result arrives before its slot is done") {
  Mirrored both;
  uint64_t sequence = both.ask(5);
  both.settle();
  CHECK(both.program.slot(5).done.load() == 0);
  both.reader.next();
  both.complete(5, sequence, 2, {11, 22, 33});
  both.settle();
  CHECK(both.program.slot(5).done.load() == sequence);
  CHECK(both.program.slot(5).result == 2);
  CHECK(both.program.slot(5).replyWords == 3);
  CHECK(std::memcmp(both.program.reply(5), both.worker.reply(5), 24) == 0);
}

TEST_CASE("a slot that an earlier wait left with an error and a larger number starts anew") {
  Mirrored both;
  uint64_t first = both.synchronize(300);
  both.settle();
  both.complete(300, first, 700);  // as a worker does that refuses a wait
  both.settle();
  CHECK(both.program.slot(300).result == 700);
  both.program.slot(300).done.store(0);  // as the next wait does
  both.program.slot(300).result = 0;
  uint64_t second = both.synchronize(300);
  both.settle();
  both.worker.slot(300).done.store(second);  // as the GPU does
  both.settle();
  CHECK(both.program.slot(300).done.load() == second);
  CHECK(both.program.slot(300).result == 0);

  RingWriter other(both.program, 1);
  both.program.slot(300).done.store(0);
  uint64_t elsewhere = both.post<api::Cuda::CtxSynchronizeParams>(
      api::Method::ctxSynchronize, 300, [](auto&) {}, &other);
  REQUIRE(elsewhere <= second);
  both.settle();
  CHECK(both.program.slot(300).done.load() == 0);
  both.worker.slot(300).done.store(elsewhere);
  both.settle();
  CHECK(both.program.slot(300).done.load() == elsewhere);
}

TEST_CASE("a slab's bytes arrive before the frame that reads them, and the GPU's release of the slab frees the program's") {
  Mirrored both;
  std::memset(both.program.slab(9), 0x5a, 1000);
  both.program.slabState(9).busy.store(77);
  both.post<api::Cuda::Copy3dParams>(api::Method::copy3d, 0, [](auto& frame) {
    frame.setTo(deviceArena(0));
    frame.setFrom(api::Place::slab(9).number());
    frame.setWidth(500);
    frame.setHeight(2);
  });
  both.settle();
  REQUIRE(both.reader.next());
  CHECK(std::memcmp(both.worker.slab(9), both.program.slab(9), 1000) == 0);
  CHECK(both.worker.slabState(9).busy.load() != 0);
  CHECK(both.program.slabState(9).busy.load() == 77);
  both.worker.slabState(9).busy.store(0);
  both.settle();
  CHECK(both.program.slabState(9).busy.load() == 0);
}

TEST_CASE("a slab that the program has reclaimed with a new generation stays taken") {
  Mirrored both;
  both.program.slabState(9).busy.store(77);
  both.post<api::Cuda::Copy3dParams>(api::Method::copy3d, 0, [](auto& frame) {
    frame.setFrom(api::Place::slab(9).number());
    frame.setWidth(8);
  });
  both.settle();
  both.program.slabState(9).busy.store(78);
  both.worker.slabState(9).busy.store(0);
  both.settle();
  CHECK(both.program.slabState(9).busy.load() == 78);
}

TEST_CASE("the bytes of a copy to the host are there when its slot is done: in a slab, or behind the slot") {
  Mirrored both;
  auto copyTo = [&](api::Place to, uint16_t slot) {
    return both.post<api::Cuda::Copy3dParams>(api::Method::copy3dBack, slot, [&](auto& frame) {
      frame.setTo(to.number());
      frame.setFrom(deviceArena(0));
      frame.setWidth(3000);
    });
  };
  uint64_t first = copyTo(api::Place::slab(4), 400), second = copyTo(api::Place(), 70);
  both.settle();
  std::memset(both.worker.slab(4), 1, 3000);
  std::memset(both.worker.reply(70), 2, 3000);
  both.worker.slot(400).done.store(first);
  both.worker.slot(70).done.store(second);
  both.settle();
  CHECK(both.program.slot(400).done.load() == first);
  CHECK(both.program.slot(70).done.load() == second);
  CHECK(std::memcmp(both.program.slab(4), both.worker.slab(4), 3000) == 0);
  CHECK(std::memcmp(both.program.reply(70), both.worker.reply(70), 3000) == 0);
}

TEST_CASE("a copy's bytes, in both directions, are sent beside the messages if a path exists") {
  Mirrored both;
  both.pair.a.setWayBeside(true);
  both.pair.b.setWayBeside(true);
  both.program.slabState(9).busy.store(77);
  both.post<api::Cuda::Copy3dParams>(api::Method::copy3d, 0, [](auto& frame) {
    frame.setTo(deviceArena(0));
    frame.setFrom(api::Place::slab(9).number());
    frame.setWidth(slabBytes);
  });
  const uint64_t back = both.post<api::Cuda::Copy3dParams>(api::Method::copy3dBack, 400, [&](auto& frame) {
    frame.setTo(api::Place::slab(4).number());
    frame.setFrom(deviceArena(0));
    frame.setWidth(slabBytes / 2);
  });
  both.settle();
  CHECK_FALSE(both.reader.next());
  auto there = both.pair.a.nextBeside();
  REQUIRE(there);
  CHECK(there->slab == 9);
  CHECK(there->bytes == slabBytes);
  CHECK_FALSE(both.pair.a.nextBeside());
  both.pair.b.arrivedBeside(there->message, there->bytes);
  both.settle();
  REQUIRE(both.reader.next());
  CHECK(both.worker.slabState(9).busy.load() != 0);

  both.worker.slot(400).done.store(back);
  both.settle();
  CHECK(both.program.slot(400).done.load() == 0);
  auto here = both.pair.b.nextBeside();
  REQUIRE(here);
  CHECK(here->slab == 4);
  CHECK(here->bytes == slabBytes / 2);
  both.pair.a.arrivedBeside(here->message, here->bytes);
  both.settle();
  CHECK(both.program.slot(400).done.load() == back);
}

TEST_CASE("completion words that frames have named are reported, and the program's replies go back") {
  Mirrored both;
  uint64_t recorded =
      both.post<api::Cuda::EventRecordParams>(api::Method::eventRecord, 0, [](auto& frame) { frame.setLine(12); });
  uint64_t called =
      both.post<api::Cuda::HostFunctionParams>(api::Method::hostFunction, 0, [](auto& frame) { frame.setLine(13); });
  both.settle();
  CHECK(both.atWorker.isExpecting());
  both.worker.completionWord(12).done.store(recorded);
  both.worker.completionWord(13).done.store(called);
  both.worker.completionWord(14).done.store(99);  // no frame has named it
  both.settle();
  CHECK(both.program.completionWord(12).done.load() == recorded);
  CHECK(both.program.completionWord(13).done.load() == called);
  CHECK(both.program.completionWord(14).done.load() == 0);
  both.program.completionWord(13).answered.store(called);
  both.settle();
  CHECK(both.worker.completionWord(13).answered.load() == called);
}

TEST_CASE("when a wait has ended, an event that was recorded before it has completed") {
  Mirrored both;
  uint64_t recorded =
      both.post<api::Cuda::EventRecordParams>(api::Method::eventRecord, 0, [](auto& frame) { frame.setLine(12); });
  uint64_t waited = both.synchronize(300);
  both.settle();
  both.worker.completionWord(12).done.store(recorded);
  both.worker.slot(300).done.store(waited);
  both.atWorker.send();
  both.pair.move(SIZE_MAX, SIZE_MAX);
  bool isInOrder = true;
  auto applyOne = [&](const LinkMessage& message) {
    both.atProgram.apply(message);
    if (both.program.slot(300).done.load() == waited) isInOrder &= both.program.completionWord(12).done.load() == recorded;
  };
  both.pair.deliver(applyOne, [&](const LinkMessage& message) { both.atWorker.apply(message); });
  CHECK(both.program.slot(300).done.load() == waited);
  CHECK(isInOrder);
}

TEST_CASE("a record that depends on another stream's is reported after it, however fast streams hand work to each other") {
  Mirrored both;
  // Two streams record alternately, each record behind the other stream's previous one.
  std::vector<uint64_t> records;
  for (uint32_t i = 0; i < 4000; ++i)
    records.push_back(both.post<api::Cuda::EventRecordParams>(api::Method::eventRecord, 0,
                                                              [&](auto& frame) { frame.setLine(i % 2 == 0 ? 13 : 12); }));
  both.settle();
  std::thread gpu([&] {
    for (uint32_t i = 0; i < records.size(); ++i)
      both.worker.completionWord(i % 2 == 0 ? 13 : 12).done.store(records[i], std::memory_order_release);
  });
  auto isDone = [&](uint32_t i) { return both.program.completionWord(i % 2 == 0 ? 13 : 12).done.load() >= records[i]; };
  uint32_t done = 0;
  bool isInOrder = true;
  auto applyOne = [&](const LinkMessage& message) {
    both.atProgram.apply(message);
    while (done < records.size() && isDone(done)) ++done;
    for (uint32_t later = done; later < std::min<size_t>(done + 4, records.size()); ++later) isInOrder &= !isDone(later);
  };
  while (done < records.size() && isInOrder) {
    both.atWorker.send();
    both.pair.move(SIZE_MAX, SIZE_MAX);
    both.pair.deliver(applyOne, [&](const LinkMessage& message) { both.atWorker.apply(message); });
  }
  gpu.join();
  CHECK(isInOrder);
}

TEST_CASE("errors and flags come from the worker, and the program clears a fault") {
  Mirrored both;
  both.worker.header().fault[1].store(719);
  both.worker.header().deferred[0].store(2);
  both.worker.header().storesImages.store(1);
  both.worker.header().outputWaits.store(1);
  both.settle();
  CHECK(both.program.header().fault[1].load() == 719);
  CHECK(both.program.header().deferred[0].load() == 2);
  CHECK(both.program.header().storesImages.load() == 1);
  CHECK(both.program.header().outputWaits.load() == 1);
  both.worker.header().deferred[0].store(3);  // only the first error counts
  both.settle();
  CHECK(both.program.header().deferred[0].load() == 2);
  both.program.header().fault[1].store(0);
  both.settle();
  CHECK(both.worker.header().fault[1].load() == 0);
}

TEST_CASE("waits for completions of a destroyed context end") {
  Mirrored both;
  both.synchronize(500);
  both.post<api::Cuda::StreamFenceParams>(api::Method::streamFence, 0, [](auto& frame) { frame.setLine(3); });
  both.settle();
  CHECK(both.atWorker.isExpecting());
  while (both.reader.next()) both.reader.release();
  both.worker.header().fault[0].store(719);
  both.settle();
  CHECK_FALSE(both.atWorker.isExpecting());
}

TEST_CASE("every call is answered once, though connections break at any byte") {
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    Mirrored both;
    constexpr unsigned count = 400;
    unsigned asked = 0, executed = 0, answered = 0;
    std::vector<uint64_t> sequences;
    while (answered < count) {
      if (asked < count && asked - answered < 200 && random() % 3 != 0) {
        auto slot = static_cast<uint16_t>(asked++ % 256);
        both.program.slot(slot).done.store(0);
        sequences.push_back(both.ask(slot));
      }
      both.atProgram.send();
      both.atWorker.send();
      both.pair.move(random() % 900, random() % 900);
      both.apply();
      if (random() % 6 == 0) both.pair.cut();
      if (auto frame = both.reader.next(); frame && random() % 2 == 0) {
        REQUIRE(frame->sequence() == sequences[executed]);
        both.reader.release();
        both.complete(frame->slot, frame->sequence(), static_cast<int32_t>(executed), {executed});
        ++executed;
      }
      while (answered < asked && both.program.slot(answered % 256).done.load() >= sequences[answered]) {
        uint64_t reply;
        std::memcpy(&reply, both.program.reply(answered % 256), 8);
        REQUIRE(reply == answered);
        REQUIRE(both.program.slot(answered % 256).result == static_cast<int32_t>(answered));
        ++answered;
      }
    }
    CHECK(executed == count);
  }
}

TEST_CASE("a migrated session continues in a new segment: pending frames and completions are kept") {
  Mirrored before;
  before.program.header().storesImages.store(1);  // the previous worker's value
  uint64_t called =
      before.post<api::Cuda::HostFunctionParams>(api::Method::hostFunction, 0, [](auto& frame) { frame.setLine(13); });
  before.settle();
  before.worker.completionWord(13).done.store(called);
  before.settle();
  before.program.completionWord(13).answered.store(called);
  REQUIRE(before.reader.next());
  before.reader.release();
  before.settle();
  const uint64_t place = before.program.ring(0).tail.load();
  std::memset(before.program.slab(9), 0x5a, 1000);
  before.program.slabState(9).busy.store(77);
  before.post<api::Cuda::Copy3dParams>(api::Method::copy3d, 0, [](auto& frame) {
    frame.setFrom(api::Place::slab(9).number());
    frame.setWidth(1000);
  });
  before.settle();  // it is in the previous worker's ring, which does not consume it

  MemoryFile file = Segment::create();
  Segment worker(file);
  LinkPair pair;
  ProgramMirror atProgram(before.program, pair.a);
  WorkerMirror atWorker(worker, pair.b);
  auto settle = [&] {
    for (bool any = true; any;) {
      any = atProgram.send() | atWorker.send();
      pair.settle([&](const LinkMessage& message) { CHECK(atProgram.apply(message)); },
                  [&](const LinkMessage& message) { CHECK(atWorker.apply(message)); });
    }
  };
  atProgram.introduce();
  settle();
  CHECK(worker.ring(0).tail.load() == place);
  CHECK(worker.ring(0).isOpen.load() == 1);
  CHECK(worker.completionWord(13).done.load() == called);
  CHECK(worker.completionWord(13).answered.load() == called);
  CHECK(before.program.header().storesImages.load() == 0);
  RingReader reader(worker, place);
  auto frame = reader.next();
  REQUIRE(frame);
  CHECK(frame->position == place);
  CHECK(std::memcmp(worker.slab(9), before.program.slab(9), 1000) == 0);
  reader.release();
  worker.slabState(9).busy.store(0);
  worker.completionWord(13).done.store(called + 1000);  // a graph writes it, and waits for the reply
  settle();
  CHECK(before.program.ring(0).tail.load() == place + frame->bytes);
  CHECK(before.program.slabState(9).busy.load() == 0);
  CHECK(before.program.completionWord(13).done.load() == called + 1000);
  before.program.completionWord(13).answered.store(called + 1000);
  settle();
  CHECK(worker.completionWord(13).answered.load() == called + 1000);
}

TEST_CASE("messages that no relay sends are refused") {
  auto refuses = [](MirrorMessage type, const auto& head, std::vector<std::byte> bytes = {}) {
    Mirrored both;
    mirror::send(both.pair.a, type, head, bytes);
    both.pair.move(SIZE_MAX, SIZE_MAX);
    CHECK_THROWS_AS(both.apply(), kj::Exception);
  };
  using namespace mirror;
  refuses(MirrorMessage::frames, FramesAt{64, 0});
  refuses(MirrorMessage::frames, FramesAt{0, 16});
  refuses(MirrorMessage::frames, FramesAt{0, 0}, std::vector<std::byte>(64));
  refuses(MirrorMessage::slabLent, SlabBytes{64, 1});
  refuses(MirrorMessage::slabLent, SlabBytes{0, 1}, std::vector<std::byte>(slabBytes + 1));
  refuses(MirrorMessage::answered, WordValue{completionWordCount});
  refuses(MirrorMessage::faultCleared, DeviceCode{16, 0});
  refuses(MirrorMessage::fold, uint16_t{1});
  refuses(MirrorMessage::ringPlace, RingPlace{64, 16, 0});
  refuses(MirrorMessage::ringPlace, RingPlace{65, 0, 0});
  refuses(MirrorMessage::ringPlace, RingPlace{0, 0, 0});
  refuses(MirrorMessage::wordPlace, WordPlace{completionWordCount, 0, 0, 0});
}
