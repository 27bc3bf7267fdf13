#include "tools/vgpud/guest-pauses.h"

#include <utility>

#include "vgpu/base/fail.h"

namespace vgpu::daemon {
namespace {

constexpr auto lookInterval = 5 * kj::MILLISECONDS;

}  // namespace

class GuestPauses::Pause final : public control::GuestPause::Server {
 public:
  Pause(GuestPauses& pauses, std::string guest) : pauses(pauses), guest(std::move(guest)) { ++pauses.guests[this->guest].pauses; }
  ~Pause() noexcept(false) { pauses.end(guest, hasMoved); }

 protected:
  kj::Promise<void> moved(MovedContext) override {
    hasMoved = true;
    return kj::READY_NOW;
  }

 private:
  GuestPauses& pauses;
  const std::string guest;
  bool hasMoved = false;
};

kj::Promise<void> GuestPauses::open(std::string guest, kj::Function<kj::Promise<void>()> open) {
  Guest& its = guests[guest];
  kj::Promise<void> ready = kj::READY_NOW;
  if (its.pauses != 0) {
    auto waiting = kj::newPromiseAndFulfiller<void>();
    its.waiting.add(kj::mv(waiting.fulfiller));
    ready = kj::mv(waiting.promise);
  }
  return ready.then([&its, open = kj::mv(open)]() mutable {
    ++its.openings;
    return kj::evalNow([&] { return open(); }).attach(kj::mv(open), kj::defer([&its] { --its.openings; }));
  });
}

kj::Promise<control::GuestPause::Client> GuestPauses::begin(std::string guest) {
  control::GuestPause::Client pause = kj::heap<Pause>(*this, guest);
  return noneOpening(std::move(guest)).then([pause = kj::mv(pause)]() mutable { return kj::mv(pause); });
}

kj::Promise<void> GuestPauses::noneOpening(std::string guest) {
  if (guests[guest].openings == 0) return kj::READY_NOW;
  return timer.afterDelay(lookInterval).then([this, guest = std::move(guest)]() mutable {
    return noneOpening(std::move(guest));
  });
}

void GuestPauses::end(const std::string& guest, bool hasMoved) {
  Guest& its = guests[guest];
  if (--its.pauses != 0) return;
  for (auto& one : std::exchange(its.waiting, {})) {
    if (hasMoved)
      one->rejectIfThrows([&] { fail("the virtual machine of guest " + guest + " runs on another host"); });
    else
      one->fulfill();
  }
}

}  // namespace vgpu::daemon
