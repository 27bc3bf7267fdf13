// A program whose GPU is across a network does not wait in calls that CUDA allows to return at once, and waits for one round trip in those
// that must wait. The process that forwards its messages counts them (tests/tools/counting-link); VGPU_LINK_COUNTER names its socket.
// Without it nothing is counted. No time is measured.
#include <sys/socket.h>
#include <sys/un.h>

#include "program.h"

__global__ void addOne(int* value) { *value += 1; }

constexpr int launches = 200, elements = 1024;

// The process that forwards this program's messages.
class Counter {
 public:
  Counter() {
    const char* path = std::getenv("VGPU_LINK_COUNTER");
    if (path == nullptr) return;
    sockaddr_un address{AF_UNIX, {}};
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    connection = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return;
    std::perror(path);
    std::exit(1);
  }

  // hold() stops all messages from the GPU's host; release() lets them arrive again, and counts from 0.
  void hold() { ask('h'); }
  void release() { ask('r'); }
  // How many times this side has sent something to the worker and then received a reply, since the last release().
  int trips() { return ask('t'); }

 private:
  int ask(char what) {
    int number = 0;
    if (connection < 0) return number;
    if (write(connection, &what, 1) == 1 && recv(connection, &number, sizeof number, MSG_WAITALL) == sizeof number) return number;
    std::fprintf(stderr, "the counter has ended\n");
    std::exit(1);
  }

  int connection = -1;
};

// Waits until the worker has nothing more to send.
void settle() { CHECK(cudaDeviceSynchronize()); }

// `work` must end although nothing arrives from the GPU's host; otherwise the program hangs.
template <typename Work>
void needsNoReply(Counter& counter, const char* what, Work work) {
  settle();
  std::fprintf(stderr, "%s: no reply\n", what);
  counter.hold();
  work();
  counter.release();
  settle();
}

// One attempt with one trip is enough: work that needs a second trip makes it in every attempt. An attempt may count more trips than it
// needs, if the worker reports on early calls before the last ones are sent.
template <typename Work>
bool needsOneTrip(Counter& counter, const char* what, Work work) {
  int trips = 2;
  for (int times = 0; times < 50 && trips > 1; ++times) {
    settle();
    counter.release();
    work();
    trips = counter.trips();
  }
  std::fprintf(stderr, "%s: %d round trips\n", what, trips);
  return EXPECT(trips <= 1);
}

int main() {
  Counter counter;
  DeviceArray<int> value(elements), other(elements);
  value.upload(std::vector<int>(elements, 0));
  int* pinned;
  CHECK(cudaMallocHost(&pinned, elements * sizeof(int)));
  std::vector<int> pageable(elements, 7);
  std::vector<void*> made(100);
  cudaEvent_t event;
  CHECK(cudaEventCreate(&event));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  addOne<<<1, 1>>>(value);
  CHECK(cudaMemcpyAsync(pinned, value, sizeof(int), cudaMemcpyDeviceToHost));

  needsNoReply(counter, "launches", [&] {
    for (int i = 0; i < launches; ++i) addOne<<<1, 1>>>(value);
  });
  needsNoReply(counter, "allocations", [&] {
    for (void*& one : made) CHECK(cudaMalloc(&one, 4096));
  });
  needsNoReply(counter, "event records", [&] {
    for (int i = 0; i < launches; ++i) CHECK(cudaEventRecord(event));
  });
  for (int i = 0; i < elements; ++i) pinned[i] = 5;
  CHECK(cudaMemcpyAsync(other, pinned, elements * sizeof(int), cudaMemcpyHostToDevice, stream));  // sends the bytes that were written
  needsNoReply(counter, "asynchronous copies", [&] {
    CHECK(cudaMemcpyAsync(other, pinned, elements * sizeof(int), cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpyAsync(value, pageable.data(), sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(made[0], other, elements * sizeof(int), cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaMemsetAsync(made[1], 1, 4096, stream));
    CHECK(cudaMemcpyAsync(pinned, made[0], elements * sizeof(int), cudaMemcpyDeviceToHost, stream));
  });
  bool ok = EXPECT(pinned[elements - 1] == 5);

  int added = 0;  // to the value, which is 7 now
  auto addOnes = [&](int count) {
    for (int i = 0; i < count; ++i) addOne<<<1, 1>>>(value);
    added += count;
  };
  ok &= needsOneTrip(counter, "a wait for the device", [&] {
    addOnes(launches);
    CHECK(cudaDeviceSynchronize());
  });
  ok &= needsOneTrip(counter, "a wait for a stream", [&] {
    addOne<<<1, 1, 0, stream>>>(value);
    ++added;
    CHECK(cudaStreamSynchronize(stream));
  });
  ok &= needsOneTrip(counter, "a wait for an event", [&] {
    addOnes(1);
    CHECK(cudaEventRecord(event));
    CHECK(cudaEventSynchronize(event));
  });
  int found = 0;
  ok &= needsOneTrip(counter, "a read", [&] { CHECK(cudaMemcpy(&found, value, sizeof found, cudaMemcpyDeviceToHost)); });
  ok &= needsOneTrip(counter, "a step of many launches and a read", [&] {
    addOnes(launches);
    CHECK(cudaMemcpy(&found, value, sizeof found, cudaMemcpyDeviceToHost));
  });
  ok &= EXPECT(found == 7 + added);

  for (void* one : made) CHECK(cudaFree(one));
  CHECK(cudaFreeHost(pinned));
  CHECK(cudaEventDestroy(event));
  CHECK(cudaStreamDestroy(stream));
  return verdict("network-trips", ok);
}
