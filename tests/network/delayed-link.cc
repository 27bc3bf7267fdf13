// A link between two network namespaces with the rate and the delay of a real one, made of a TUN device in each: for tests and figures
// of programs whose GPU is on another host. (The kernel's netem is not available everywhere.)
//
//   delayed-link NAMESPACE-A NAMESPACE-B MBIT-PER-SECOND MICROSECONDS-EACH-WAY
//
// Needs root. The device is called wire0 in both; prints "ready" when both exist, and runs until it is ended. SIGUSR1 cuts the link, or
// joins it again; SIGUSR2 starts or stops delaying every seventh packet by 3 ms, so that it arrives behind later ones.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr size_t mostPacket = 65536;
constexpr auto mostQueued = milliseconds(20);  // as a router with a full queue, the link drops packets beyond it
constexpr auto lateBy = milliseconds(3);

std::atomic<bool> isCut{false}, reorders{false};

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "delayed-link: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

// Opens the device in the namespace of that name. The thread stays in that namespace.
int openDevice(const std::string& name) {
  int space = open(("/var/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0 || setns(space, CLONE_NEWNET) < 0) die(("namespace " + name).c_str());
  close(space);
  int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (device < 0) die("/dev/net/tun");
  ifreq request{};
  std::strcpy(request.ifr_name, "wire0");
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (ioctl(device, TUNSETIFF, &request) < 0) die("TUNSETIFF");
  return device;
}

// Packets of one direction, ordered by their time of arrival.
class Direction {
 public:
  Direction(int from, int to, double bitsPerSecond, microseconds delay)
      : from(from), to(to), nanosecondsPerByte(8e9 / bitsPerSecond), delay(delay) {}

  void run() {
    while (true) {
      deliver();
      nanoseconds wait = underWay.empty() ? nanoseconds(std::chrono::hours(1)) : underWay.begin()->first - Clock::now();
      // poll() returns later than a packet takes, so the last 80 µs are spent spinning.
      pollfd readable{from, POLLIN, 0};
      timespec limit{0, 0};
      if (wait > microseconds(80)) limit = {wait.count() / 1'000'000'000, (wait - microseconds(80)).count() % 1'000'000'000};
      ppoll(&readable, 1, &limit, nullptr);
      for (int i = 0; i < 16 && take(); ++i) {
      }
    }
  }

 private:
  bool take() {
    ssize_t bytes = read(from, taken.data(), taken.size());
    if (bytes <= 0) return false;
    const auto now = Clock::now();
    if (isCut || freeAt - now > mostQueued) return true;  // the packet is dropped
    freeAt = std::max(freeAt, now) + nanoseconds(static_cast<int64_t>(nanosecondsPerByte * static_cast<double>(bytes)));
    const bool isLate = reorders && ++count % 7 == 0;
    underWay.emplace(freeAt + delay + (isLate ? lateBy : milliseconds(0)),
                     std::vector<char>(taken.begin(), taken.begin() + bytes));
    return true;
  }

  void deliver() {
    for (const auto now = Clock::now(); !underWay.empty() && underWay.begin()->first <= now; underWay.erase(underWay.begin()))
      if (auto& packet = underWay.begin()->second; write(to, packet.data(), packet.size()) < 0 && errno != EAGAIN && errno != EIO)
        die("a packet cannot be delivered");
  }

  const int from, to;
  const double nanosecondsPerByte;
  const microseconds delay;
  Clock::time_point freeAt{};  // when the last packet taken has left the queue
  std::multimap<Clock::time_point, std::vector<char>> underWay;
  std::vector<char> taken = std::vector<char>(mostPacket);
  unsigned count = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: delayed-link NAMESPACE-A NAMESPACE-B MBIT-PER-SECOND MICROSECONDS-EACH-WAY\n");
    return 2;
  }
  const double rate = std::atof(argv[3]) * 1e6;
  const microseconds delay(std::atoi(argv[4]));
  signal(SIGUSR1, [](int) { isCut = !isCut; });
  signal(SIGUSR2, [](int) { reorders = !reorders; });
  const int a = openDevice(argv[1]), b = openDevice(argv[2]);
  std::printf("ready\n");
  std::fflush(stdout);
  std::thread there([&] { Direction(a, b, rate, delay).run(); });
  Direction(b, a, rate, delay).run();
}
