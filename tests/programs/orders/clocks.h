// CUDA's ordering rules as data: vector clocks of streams, events and the host record which work is known to be complete before which. Only
// orderings that CUDA guarantees are recorded; if its manual leaves an order open, there is none.
//   Work in a stream is ordered behind the stream's earlier work, behind the events that the stream was made to wait for, and behind all
//   work that the host knew to be complete when it enqueued the work.
//   Work in the legacy default stream is ordered behind that of its device's blocking streams, and the reverse. An event record is no work:
//   it waits for no other stream (580.159, H200). Whether a stream-ordered free and a prefetch are work in this sense is unspecified.
// Each thread has its own clocks, for its own work.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "../program.h"

namespace orders {

struct Random {
  explicit Random(unsigned seed) : numbers(seed) {}
  int pick(int count) { return static_cast<int>(numbers() % static_cast<unsigned>(count)); }
  bool oneIn(int count) { return pick(count) == 0; }

  std::mt19937 numbers;
};

// The number-th piece of work of a stream; stream -1 stands for work that is always complete.
struct Moment {
  int stream = -1;
  int number = 0;
};

// How much of each stream's work is known to be complete.
class Clock {
 public:
  explicit Clock(size_t streams = 0) : done(streams) {}
  bool knows(Moment moment) const { return moment.stream < 0 || done[moment.stream] >= moment.number; }
  void learn(const Clock& other) {
    for (size_t stream = 0; stream < done.size(); ++stream) done[stream] = std::max(done[stream], other.done[stream]);
  }
  Moment next(int stream) { return {stream, ++done[stream]}; }

 private:
  std::vector<int> done;
};

enum class StreamKind { legacy, perThread, blocking, nonBlocking };

// The streams and events of a thread, and the host's knowledge. Streams and events are identified by their index.
class Order {
 public:
  Order(Random& random, int devices, bool isAlone);
  ~Order();
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;

  int pickStream() { return random.pick(static_cast<int>(streams.size())); }
  int pickStreamOf(int device) { return device * streamsOfDevice + random.pick(streamsOfDevice); }
  int deviceOf(int stream) const { return stream / streamsOfDevice; }
  bool isLegacy(int stream) const { return streams[stream].kind == StreamKind::legacy; }
  // Whether it can be captured: a blocking stream cannot while another thread uses the legacy default stream.
  bool isCapturable(int stream) const {
    return streams[stream].kind == StreamKind::nonBlocking || (isAlone && streams[stream].kind != StreamKind::legacy);
  }
  bool doesHostKnow(Moment moment) const { return host.knows(moment); }

  // The stream; makes its device current.
  cudaStream_t enter(int stream);
  // Adds a piece of work to the stream.
  Moment post(int stream);
  // Adds something that may not count as work: known to be ordered only within its stream.
  Moment postWithin(int stream);
  // Adds waits so that the stream's next work, or the host's next step, is ordered behind the moment.
  void require(int stream, Moment moment, bool isWork = true);
  void requireOfHost(Moment moment);
  // For a call that returns after all of the stream's present work is complete.
  void returned(int stream) { host.learn(whole(stream)); }

  int record(int stream);
  void wait(int stream, int event);
  void waitForAny(int stream) { wait(stream, random.pick(static_cast<int>(events.size()))); }
  void synchronize(int stream);
  void synchronizeDevice(int device);
  // Destroys the stream while its work is pending; another one replaces it.
  void replace(int stream);

 private:
  struct Stream {
    cudaStream_t handle;
    StreamKind kind;
    Clock clock;    // known when all of its operations are complete
    Clock worked;   // known when its last work is complete
    Clock awaited;  // further waits of its next operation
  };
  struct Event {
    cudaEvent_t handle;
    int device;
    Clock clock;  // at its last record
  };
  static constexpr int streamsOfDevice = 6, eventsOfDevice = 5;

  bool isBlocking(int stream) const {
    return streams[stream].kind == StreamKind::perThread || streams[stream].kind == StreamKind::blocking;
  }
  Clock whole(int stream) const;
  Clock ahead(int stream) const;
  void create(Stream& stream);
  void create(Event& event);

  Random& random;
  const bool isAlone;
  std::vector<Stream> streams;
  std::vector<Event> events;
  Clock host;
};

inline Order::Order(Random& random, int devices, bool isAlone)
    : random(random), isAlone(isAlone), host(static_cast<size_t>(devices) * streamsOfDevice) {
  constexpr StreamKind kinds[streamsOfDevice] = {StreamKind::legacy,   StreamKind::perThread,   StreamKind::blocking,
                                                 StreamKind::blocking, StreamKind::nonBlocking, StreamKind::nonBlocking};
  for (int device = 0; device < devices; ++device) {
    CHECK(cudaSetDevice(device));
    for (auto kind : kinds) create(streams.emplace_back(Stream{nullptr, kind, host, host, host}));
    for (int i = 0; i < eventsOfDevice; ++i) create(events.emplace_back(Event{nullptr, device, host}));
  }
}

inline Order::~Order() {
  for (auto& stream : streams)
    if (stream.kind == StreamKind::blocking || stream.kind == StreamKind::nonBlocking) CHECK(cudaStreamDestroy(stream.handle));
  for (auto& event : events) CHECK(cudaEventDestroy(event.handle));
}

inline void Order::create(Stream& stream) {
  switch (stream.kind) {
    case StreamKind::legacy: stream.handle = nullptr; break;
    case StreamKind::perThread: stream.handle = cudaStreamPerThread; break;
    case StreamKind::blocking: CHECK(cudaStreamCreate(&stream.handle)); break;
    case StreamKind::nonBlocking: CHECK(cudaStreamCreateWithFlags(&stream.handle, cudaStreamNonBlocking)); break;
  }
}

inline void Order::create(Event& event) {
  CHECK(cudaEventCreateWithFlags(&event.handle, random.oneIn(2) ? cudaEventDisableTiming : cudaEventDefault));
}

inline cudaStream_t Order::enter(int stream) {
  CHECK(cudaSetDevice(deviceOf(stream)));
  return streams[stream].handle;
}

// Known when the stream is idle.
inline Clock Order::whole(int stream) const {
  Clock clock = streams[stream].clock;
  clock.learn(streams[stream].awaited);
  return clock;
}

// Everything that the stream's next work is ordered behind.
inline Clock Order::ahead(int stream) const {
  Clock clock = whole(stream);
  clock.learn(host);
  for (int other = 0; other < static_cast<int>(streams.size()); ++other) {
    if (deviceOf(other) != deviceOf(stream)) continue;
    if ((isLegacy(stream) && isBlocking(other)) || (isBlocking(stream) && isLegacy(other))) clock.learn(streams[other].worked);
  }
  return clock;
}

inline Moment Order::post(int stream) {
  auto& [handle, kind, clock, worked, awaited] = streams[stream];
  clock = ahead(stream);
  const Moment moment = clock.next(stream);
  worked = clock;
  return moment;
}

inline Moment Order::postWithin(int stream) {
  Clock& clock = streams[stream].clock;
  clock.learn(streams[stream].awaited);
  clock.learn(host);
  return clock.next(stream);
}

inline void Order::require(int stream, Moment moment, bool isWork) {
  Clock within = whole(stream);
  within.learn(host);
  if ((isWork ? ahead(stream) : within).knows(moment)) return;
  if (random.oneIn(10)) return requireOfHost(moment);
  // An event that was recorded behind it earlier can be used as well.
  const int event = random.pick(static_cast<int>(events.size()));
  wait(stream, events[event].clock.knows(moment) ? event : record(moment.stream));
}

inline void Order::requireOfHost(Moment moment) {
  if (!host.knows(moment)) synchronize(moment.stream);
}

// Records an event of the stream's device, an existing or a new one.
inline int Order::record(int stream) {
  const int place = deviceOf(stream) * eventsOfDevice + random.pick(eventsOfDevice);
  const cudaStream_t handle = enter(stream);
  Event& event = events[place];
  if (random.oneIn(6)) {
    CHECK(cudaEventDestroy(event.handle));
    create(event);
  }
  CHECK(cudaEventRecord(event.handle, handle));
  event.clock = whole(stream);
  event.clock.learn(host);
  return place;
}

inline void Order::wait(int stream, int event) {
  const cudaStream_t handle = enter(stream);
  CHECK(cudaStreamWaitEvent(handle, events[event].handle, 0));
  streams[stream].awaited.learn(events[event].clock);
}

// Waits for all of the stream's work on the host, in a randomly chosen way.
inline void Order::synchronize(int stream) {
  const cudaStream_t handle = enter(stream);
  switch (random.pick(isAlone ? 9 : 8)) {
    case 0:
    case 1:
    case 2: {
      const int event = record(stream);
      CHECK(cudaEventSynchronize(events[event].handle));
      break;
    }
    case 3:
    case 4: {
      cudaError_t state;
      while ((state = cudaStreamQuery(handle)) == cudaErrorNotReady) {}
      CHECK(state);
      break;
    }
    case 8: return synchronizeDevice(deviceOf(stream));
    default: CHECK(cudaStreamSynchronize(handle)); break;
  }
  returned(stream);
}

inline void Order::synchronizeDevice(int device) {
  CHECK(cudaSetDevice(device));
  CHECK(cudaDeviceSynchronize());
  for (int stream = 0; stream < static_cast<int>(streams.size()); ++stream)
    if (deviceOf(stream) == device) returned(stream);
}

inline void Order::replace(int stream) {
  Stream& old = streams[stream];
  if (!isAlone || old.kind == StreamKind::legacy || old.kind == StreamKind::perThread) return;
  CHECK(cudaStreamDestroy(enter(stream)));
  synchronizeDevice(deviceOf(stream));  // the new stream is not ordered behind the old one
  create(old);
}

}  // namespace orders
