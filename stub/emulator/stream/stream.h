// Streams: ordered queues of work, and the order between streams that the legacy default stream imposes.
//
// A stream is represented by the last task tied to it. StreamSet::submit ties new work to that task and, by CUDA's rules, to the default
// stream's or to every blocking stream's.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "stub/emulator/driver/cuda-api.h"
#include "stub/emulator/stream/scheduler.h"

namespace vgpu::emulator::api {

// The range that cuCtxGetStreamPriorityRange returns on hardware.
constexpr int leastPriority = 0, greatestPriority = -5;

struct Capture;
struct Event;
struct EventRecording;
struct Graph;
struct GraphNode;
struct GreenContext;

// A piece of work that can run once in a stream or many times in a graph.
struct Operation {
  Weight weight = Weight::heavy;
  Action action;  // empty: only a point in the order
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::shared_ptr<const void> description;  // the parameters that a query of a graph node returns, of the type that `type` determines
  bool always = false;  // runs whatever has failed
  uint64_t devices = 0;  // whose memory a copy uses, one bit each: in the default stream it is ordered with all work of these devices
};

struct Stream {
  enum class Kind { created, legacy, perThread };
  Stream(Context& owner, Kind kind, unsigned flags, int priority);

  Context& context;
  const Kind kind;
  const unsigned flags;
  std::atomic<int> priority;
  const uint64_t id;
  CUstream handle = nullptr;
  std::shared_ptr<GreenContext> green;  // the green context in which it was made; null: none
  bool blocking() const { return !(flags & CU_STREAM_NON_BLOCKING); }

  // Appends the operation to the stream's work; see StreamSet::submit.
  TaskRef submit(Operation operation, std::span<const TaskRef> after = {});
  // The same, and waits for it; refuses with the context's sticky error if there is one.
  void run(Operation operation);
  // idle(): whether everything submitted so far is done. wait(): waits until it is.
  bool idle();
  void wait();

  // While a stream is captured, its work becomes nodes of a graph; see capture.cc.
  void beginCapture(std::shared_ptr<Graph> graph, CUstreamCaptureMode mode, std::vector<GraphNode*> after);
  bool capturing();
  void refuseCapturing();  // for calls that cannot be captured: refuses, and invalidates the capture
  // Whether a record or a wait belongs to a capture; if so, it has been handled.
  bool recordCaptured(const std::shared_ptr<Event>& event, bool external);
  bool waitCaptured(const std::shared_ptr<Event>& event, bool external);
  struct CaptureState {
    std::shared_ptr<Capture> capture;
    std::vector<CUgraphNode> tail;
  };
  CaptureState captureState();
  void changeTail(const std::vector<GraphNode*>& nodes, bool replace);

  TaskRef tail;  // this and the following members: guarded by StreamSet::mutex
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode*> captureTail;  // dependencies of the next captured node
  std::map<CUlaunchAttributeID, CUlaunchAttributeValue> attributes;  // those that were set
};

// For calls that CUDA forbids while a stream of the process is captured: refuses, and invalidates those captures.
void refuseDuringCapture(Driver&);

// One of several tasks that enter a stream together: a step of an executable graph.
struct GroupMember {
  Operation operation;
  std::vector<size_t> before;    // indices of earlier members
  TaskRef after;                 // another task that it waits for
  std::shared_ptr<Event> event;  // the event that it records, as
  std::shared_ptr<EventRecording> recorded;
  bool always = false;           // runs even if the context has failed
};

// The stream of a handle for the calling thread, including the default streams; refuses if its context has failed.
std::shared_ptr<Stream> streamOf(Context& current, CUstream handle);

// The streams of one context.
class StreamSet {
 public:
  StreamSet(Context&, Scheduler&);
  // The stream of a handle for the calling thread, including the default streams.
  std::shared_ptr<Stream> resolve(CUstream handle);
  std::shared_ptr<Stream> create(unsigned flags, int priority);
  void forget(const Stream&);

  // Appends the operation to the stream's work, after all other work that CUDA orders before it.
  TaskRef submit(Stream&, Operation, std::span<const TaskRef> after);
  // Appends the members to the stream's work, after `previous`; the stream's later work runs after all of them. Returns the task that ends
  // last. If the stream is captured, `child` becomes a node instead, and `previous` is returned. `complete`: another task, or null, for
  // which the end waits; the caller starts it.
  TaskRef submitGroup(Stream&, std::vector<GroupMember> members, TaskRef previous, const Graph& child, const TaskRef& complete);
  std::shared_ptr<Graph> endCapture(Stream&);
  // Removes all streams from the capture; returns the nodes on which their next nodes would have depended.
  std::vector<GraphNode*> leaveCapture(const std::shared_ptr<Capture>&);
  // Runs `action`, which is quick, when all present work in all streams is done; on the caller's thread if there is none. Not run in a
  // context that has failed.
  void afterAll(Action action);
  // Work of another context's stream counts as this context's too: the context is busy until it has ended.
  void share(TaskRef work);
  // The tasks for which new work in the stream would wait.
  std::vector<TaskRef> pending(const Stream&);
  void waitForAll();

 private:
  friend struct Stream;
  void recordOperation(Stream&, Operation, std::shared_ptr<Event>, std::shared_ptr<Graph> child);
  void refuseImplicit(const Stream&);
  void collectPredecessors(const Stream&, std::vector<TaskRef>&);
  std::vector<TaskRef> tails();

  std::mutex mutex;
  Context& context;
  Scheduler& scheduler;
  std::shared_ptr<Stream> legacy;
  std::map<std::thread::id, std::shared_ptr<Stream>> perThread;
  std::vector<std::weak_ptr<Stream>> created;
  // last tasks of destroyed streams, with whether the streams were blocking, and tasks that run after all work
  std::vector<std::pair<bool, TaskRef>> orphans;
};

// During its life, the null stream means the per-thread default stream on this thread: for the `_ptsz` and `_ptds` entries.
class PerThreadDefault {
 public:
  PerThreadDefault() : previous(isActive) { isActive = true; }
  ~PerThreadDefault() { isActive = previous; }
  static bool active() { return isActive; }

 private:
  static thread_local bool isActive;
  bool previous;
};

}  // namespace vgpu::emulator::api
