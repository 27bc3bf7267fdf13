// A process's state besides its GPU: pinned memory that a thread and a kernel both write, a pipe, an open file at an offset, an unlinked
// file, an asynchronous I/O context, a signal handler and a timer. All of it exists after the pause point, whatever happened there.
#include "program.h"

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

constexpr int count = 1 << 18, block = 256, steps = 40;

__global__ void add(int* values, int what) { values[blockIdx.x * block + threadIdx.x] += what; }

// A thread that adds 1 to every number of the pinned memory whenever it is told to.
class Helper {
 public:
  explicit Helper(int* numbers) : thread([this, numbers] { run(numbers); }) {}
  ~Helper() {
    turn(-1);
    thread.join();
  }
  void step() {
    turn(1);
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return wanted == 0; });
  }

 private:
  void turn(int what) {
    std::lock_guard lock(mutex);
    wanted = what;
    changed.notify_all();
  }
  void run(int* numbers) {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return wanted != 0; });
      if (wanted < 0) return;
      for (int i = 0; i < count; ++i) numbers[i] += 1;
      wanted = 0;
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  int wanted = 0;
  std::thread thread;  // last, because it uses the other members
};

volatile sig_atomic_t alarms = 0;

std::string readAll(int file) {
  std::string text;
  char piece[64];
  for (ssize_t got; (got = read(file, piece, sizeof piece)) > 0;) text.append(piece, static_cast<size_t>(got));
  return text;
}

// Reads the first six bytes of the file with the I/O context.
std::string readBy(aio_context_t ring, int file) {
  char letters[6] = {};
  iocb request{};
  request.aio_lio_opcode = IOCB_CMD_PREAD;
  request.aio_fildes = static_cast<unsigned>(file);
  request.aio_buf = reinterpret_cast<unsigned long>(letters);
  request.aio_nbytes = sizeof letters;
  iocb* requests[] = {&request};
  io_event event{};
  if (syscall(SYS_io_submit, ring, 1, requests) != 1 || syscall(SYS_io_getevents, ring, 1, 1, &event, nullptr) != 1) return "";
  return event.res == sizeof letters ? std::string(letters, sizeof letters) : "";
}

int main() {
  int* pinned = nullptr;
  CHECK(cudaMallocHost(&pinned, count * sizeof(int)));
  std::fill(pinned, pinned + count, 0);
  DeviceArray<int> device(std::vector<int>(count, 0));
  Helper helper(pinned);

  int ends[2];
  char path[] = "/tmp/process-state-XXXXXX", unnamed[] = "/tmp/process-state-XXXXXX";
  int file = mkstemp(path), hidden = mkstemp(unnamed);
  aio_context_t ring = 0;
  bool ok = EXPECT(syscall(SYS_io_setup, 8, &ring) == 0) & EXPECT(pipe(ends) == 0) & EXPECT(file >= 0) & EXPECT(hidden >= 0);
  unlink(unnamed);
  ok &= EXPECT(write(ends[1], "before", 6) == 6) & EXPECT(write(file, "one two", 7) == 7) & EXPECT(lseek(file, 4, SEEK_SET) == 4) &
        EXPECT(write(hidden, "hidden", 6) == 6);
  signal(SIGALRM, [](int) { alarms = alarms + 1; });
  itimerval each{{0, 5000}, {0, 5000}};
  setitimer(ITIMER_REAL, &each, nullptr);

  std::printf("process-state: steps");
  int alarmsBefore = 0;
  for (int step = 0; step < steps; ++step) {
    add<<<count / block, block>>>(pinned, 2);  // the GPU writes host memory
    add<<<count / block, block>>>(device, step);
    CHECK(cudaDeviceSynchronize());
    helper.step();
    std::printf(" %d", step);
    std::fflush(stdout);
    if (step == steps / 2) {
      pausePoint();
      alarmsBefore = alarms;
    }
  }
  std::printf("\n");

  ok &= same("pinned memory", std::vector<int>(pinned, pinned + count), std::vector<int>(count, 3 * steps));
  ok &= same("device memory", device.download(), std::vector<int>(count, steps * (steps - 1) / 2));
  char letters[8] = {};
  ok &= EXPECT(read(ends[0], letters, sizeof letters) == 6) & EXPECT(std::string(letters) == "before");
  ok &= EXPECT(readAll(file) == "two");
  ok &= EXPECT(lseek(hidden, 0, SEEK_SET) == 0) & EXPECT(readAll(hidden) == "hidden") & EXPECT(readBy(ring, hidden) == "hidden");
  while (alarms == alarmsBefore) usleep(1000);
  itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  unlink(path);
  CHECK(cudaFreeHost(pinned));
  return verdict("process-state", ok);
}
