// Two links, with the bytes in transit between them.
#pragma once

#include <algorithm>
#include <vector>

#include "vgpu/wire/link.h"

struct LinkPair {
  vgpu::Link a, b;
  std::vector<std::byte> toA, toB;  // in transit

  // Delivers at most so many bytes each way.
  void move(size_t fromA, size_t fromB) {
    moveSome(a, toB, fromA);
    moveSome(b, toA, fromB);
  }

  template <typename AtA, typename AtB>
  void deliver(AtA&& atA, AtB&& atB) {
    arrive(a, toA, atA);
    arrive(b, toB, atB);
  }

  // Breaks the connection, which loses the bytes in transit, and begins another one.
  void cut() {
    toA.clear();
    toB.clear();
    uint64_t receivedByA = a.receivedMessages(), receivedByB = b.receivedMessages();
    a.restart(receivedByB);
    b.restart(receivedByA);
  }

  template <typename AtA, typename AtB>
  void settle(AtA&& atA, AtB&& atB) {
    do {
      move(SIZE_MAX, SIZE_MAX);
      deliver(atA, atB);
    } while (!a.unsent().empty() || !b.unsent().empty());
  }

 private:
  static void moveSome(vgpu::Link& from, std::vector<std::byte>& way, size_t most) {
    for (auto bytes = from.unsent(); most > 0 && !bytes.empty(); bytes = from.unsent()) {
      auto some = bytes.first(std::min(most, bytes.size()));
      way.insert(way.end(), some.begin(), some.end());
      from.sent(some.size());
      most -= some.size();
    }
  }

  template <typename Take>
  static void arrive(vgpu::Link& to, std::vector<std::byte>& way, Take&& take) {
    while (auto message = to.next()) take(*message);  // the bytes beside it may have arrived
    while (!way.empty()) {
      auto space = to.space();
      if (space.empty()) return;
      size_t some = std::min(space.size(), way.size());
      std::copy_n(way.begin(), some, space.begin());
      to.received(some);
      way.erase(way.begin(), way.begin() + static_cast<ptrdiff_t>(some));
      while (auto message = to.next()) take(*message);
    }
  }
};
