// Links: every message arrives once and in order, whatever happens to the connections that carry it.
#include <doctest/doctest.h>
#include <kj/exception.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "../sanitizer-share.h"
#include "link-pair.h"

using namespace vgpu;

namespace {

void sendNumber(Link& link, uint64_t number, size_t extra) {
  auto room = link.begin(7, sizeof number + extra);
  std::memcpy(room.data(), &number, sizeof number);
  std::memset(room.data() + sizeof number, static_cast<int>(number & 0xff), extra);
  link.finish(room.size());
}

// Requires the arrived messages to be numbers in order, each with the bytes that were sent with it.
struct Expected {
  uint64_t next = 0;
  void operator()(const LinkMessage& message) {
    REQUIRE(message.type == 7);
    uint64_t number;
    REQUIRE(message.payload.size() >= sizeof number);
    std::memcpy(&number, message.payload.data(), sizeof number);
    REQUIRE(number == next++);
    auto same = [&](std::byte byte) { return byte == static_cast<std::byte>(number & 0xff); };
    REQUIRE(std::ranges::all_of(message.payload.subspan(sizeof number), same));
  }
};

}  // namespace

TEST_CASE("messages arrive once and in order, over connections that are cut at any byte") {
  for (unsigned seed = 0; seed < 40 / sanitizerShare; ++seed) {
    std::mt19937 random(seed);
    LinkPair pair;
    Expected atA, atB;
    uint64_t sentByA = 0, sentByB = 0;
    while (atA.next < 300 || atB.next < 300) {
      if (sentByA < 300 && random() % 2 == 0) sendNumber(pair.a, sentByA++, random() % 5000);
      if (sentByB < 300 && random() % 2 == 0) sendNumber(pair.b, sentByB++, random() % 50);
      pair.move(random() % 3000, random() % 3000);
      pair.deliver(atA, atB);
      if (random() % 8 == 0) pair.cut();
    }
    pair.settle(atA, atB);
    CHECK(atA.next == 300);
    CHECK(atB.next == 300);
  }
}

TEST_CASE("messages that the peer has acknowledged are not kept") {
  LinkPair pair;
  Expected atA, atB;
  sendNumber(pair.a, 0, 10);
  CHECK_FALSE(pair.a.isAcknowledged());
  pair.settle(atA, atB);
  CHECK_FALSE(pair.a.isAcknowledged());
  pair.b.acknowledge(true);
  pair.settle(atA, atB);
  CHECK(pair.a.isAcknowledged());
}

TEST_CASE("two sides with nothing to acknowledge send nothing") {
  LinkPair pair;
  Expected atA, atB;
  sendNumber(pair.a, 0, 10);
  sendNumber(pair.b, 0, 10);
  for (unsigned turn = 0; turn < 3; ++turn) {
    for (Link* link : {&pair.a, &pair.b})
      if (link->owesAcknowledgement()) link->acknowledge(true);
    pair.settle(atA, atB);
  }
  for (Link* link : {&pair.a, &pair.b}) {
    CHECK(link->isAcknowledged());
    CHECK_FALSE(link->owesAcknowledgement());
  }
}

TEST_CASE("a message of the largest size passes, and a larger one is refused") {
  LinkPair pair;
  Expected atA, atB;
  sendNumber(pair.a, 0, mostLinkPayload - 8);
  pair.settle(atA, atB);
  CHECK(atB.next == 1);
  CHECK_THROWS(pair.a.begin(7, mostLinkPayload + 1));
}

TEST_CASE("bytes that no link sends are refused") {
  auto receive = [](std::vector<uint32_t> words) {
    Link link;
    auto space = link.space();
    std::memcpy(space.data(), words.data(), words.size() * 4);
    link.received(words.size() * 4);
    link.next();
  };
  CHECK_THROWS(receive({0xffffffff, 7, 0, 0, 0, 0}));  // its size
  CHECK_THROWS(receive({0, 7, 0, 0, 1, 0}));           // acknowledges a message that was never sent
  CHECK_NOTHROW(receive({0, 7, 0, 0, 0, 0}));
  Link link;
  CHECK_THROWS(link.restart(1));
}

namespace {

// The bytes sent beside the messages of `from`, in pieces that overtake each other.
struct WayBeside {
  vgpu::Link &from, &to;
  std::mt19937& random;
  std::vector<Beside> onTheWay;

  void move() {
    if (auto next = from.nextBeside()) {
      const uint32_t first = random() % next->bytes;
      onTheWay.push_back({next->message, next->slab, next->bytes - first});
      if (first != 0) onTheWay.push_back({next->message, next->slab, first});
    }
    if (onTheWay.empty() || random() % 2 == 0) return;
    std::swap(onTheWay[random() % onTheWay.size()], onTheWay.back());
    to.arrivedBeside(onTheWay.back().message, onTheWay.back().bytes);
    onTheWay.pop_back();
  }
};

void sendNumberWith(Link& link, uint64_t number, uint32_t beside) {
  auto room = link.begin(7, sizeof number);
  std::memcpy(room.data(), &number, sizeof number);
  link.putBeside(static_cast<uint32_t>(number % slabCount), beside);
  link.finish(room.size());
}

}  // namespace

TEST_CASE("a message is delivered when the bytes beside it have arrived, in order, over connections that are cut at any byte") {
  for (unsigned seed = 0; seed < 40 / sanitizerShare; ++seed) {
    std::mt19937 random(seed);
    LinkPair pair;
    Expected atA, atB;
    WayBeside toA{pair.b, pair.a, random, {}}, toB{pair.a, pair.b, random, {}};
    uint64_t sentByA = 0, sentByB = 0;
    auto sendSome = [&](Link& link, uint64_t& sent) {
      if (sent == 300 || link.isFull()) return;
      if (random() % 2 == 0)
        sendNumberWith(link, sent++, 1 + static_cast<uint32_t>(random() % slabBytes));
      else
        sendNumber(link, sent++, random() % 3000);
    };
    while (atA.next < 300 || atB.next < 300) {
      sendSome(pair.a, sentByA);
      sendSome(pair.b, sentByB);
      pair.move(random() % 3000, random() % 3000);
      toA.move();
      toB.move();
      pair.deliver(atA, atB);
      if (random() % 64 == 0) {
        pair.cut();
        toA.onTheWay.clear();
        toB.onTheWay.clear();
      }
    }
    CHECK_FALSE(pair.a.isWaitingBeside());
    CHECK_FALSE(pair.b.isWaitingBeside());
  }
}

TEST_CASE("bytes are sent beside a message if they are many and a path for them exists") {
  Link link;
  CHECK_FALSE(link.takesBeside(slabBytes));
  link.setWayBeside(true);
  CHECK(link.takesBeside(slabBytes));
  CHECK_FALSE(link.takesBeside(100));
  CHECK_FALSE(link.nextBeside());
  for (uint64_t number = 0; !link.isFull(); ++number) {
    REQUIRE(number <= 1000);
    sendNumberWith(link, number, slabBytes);
  }
  CHECK_FALSE(link.isAcknowledged());
}

TEST_CASE("invalid bytes beside a message are refused") {
  Link link;
  CHECK_THROWS(link.arrivedBeside(0, 1));  // the message was already delivered
  CHECK_THROWS(link.arrivedBeside(1, slabBytes + 1));
  link.arrivedBeside(2, slabBytes);
  CHECK_THROWS(link.arrivedBeside(2, 1));
  auto flood = [&] {
    for (uint64_t message = 10; message < 100000; ++message) link.arrivedBeside(message, 1);
  };
  CHECK_THROWS(flood());

  auto receive = [](uint32_t beside, uint32_t come) {
    LinkPair pair;
    Expected atA, atB;
    sendNumberWith(pair.a, 0, beside);
    pair.b.arrivedBeside(1, come);
    pair.settle(atA, atB);
    return atB.next;
  };
  CHECK(receive(2000, 2000) == 1);
  CHECK(receive(2000, 1000) == 0);
  CHECK_THROWS(receive(2000, 2001));
  CHECK_THROWS(receive(slabBytes + 1, 1));
}

TEST_CASE("a sender that is not acknowledged becomes full") {
  Link link;
  while (!link.isFull()) link.finish(link.begin(7, mostLinkPayload).size());
  CHECK_FALSE(link.isAcknowledged());
}
