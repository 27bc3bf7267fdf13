// Streams: ordered queues of work, and the order between them that the legacy default stream imposes.
//
// A stream is the last task tied to it. Work enters through StreamSet::submit, which ties it behind that task and, by
// CUDA's rules, behind the default stream's or every blocking stream's.
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

// The range that cuCtxGetStreamPriorityRange answers on hardware.
constexpr int leastPriority = 0, greatestPriority = -5;

struct Capture;
struct Event;
struct EventRecording;
struct Graph;
struct GraphNode;
struct GreenContext;

// A piece of work that can be run once from a stream or many times from a graph.
struct Operation {
  Weight weight = Weight::heavy;
  Action action;  // empty: a mere point in the order
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::shared_ptr<const void> description;  // what a graph's query answers, of the type that `type` says
  bool always = false;  // run whatever has failed
  uint64_t devices = 0;  // whose memory a copy uses, a bit each: in the default stream it comes behind and before all that these do
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
  std::shared_ptr<GreenContext> green;  // in which it was made; null: in none
  bool blocking() const { return !(flags & CU_STREAM_NON_BLOCKING); }

  // Puts the operation behind the stream's work; see StreamSet::submit.
  TaskRef submit(Operation operation, std::span<const TaskRef> after = {});
  // The same, and waits for it; answers what the context's work has come to.
  void run(Operation operation);
  // Whether everything submitted so far is done; waits until it is.
  bool idle();
  void wait();

  // Capture. While a stream is captured its work becomes nodes of a graph; see capture.cc.
  void beginCapture(std::shared_ptr<Graph> graph, CUstreamCaptureMode mode, std::vector<GraphNode*> after);
  bool capturing();
  void refuseCapturing();  // for what cannot be captured: refuses, and spoils the capture
  // Whether a record or a wait was part of a capture, and with that done.
  bool recordCaptured(const std::shared_ptr<Event>& event, bool external);
  bool waitCaptured(const std::shared_ptr<Event>& event, bool external);
  struct CaptureState {
    std::shared_ptr<Capture> capture;
    std::vector<CUgraphNode> tail;
  };
  CaptureState captureState();
  void changeTail(const std::vector<GraphNode*>& nodes, bool replace);

  TaskRef tail;  // this and what follows: guarded by StreamSet::mutex
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode*> captureTail;  // what the next node comes behind
  std::map<CUlaunchAttributeID, CUlaunchAttributeValue> attributes;  // those that were set
};

// For calls that CUDA forbids while a stream of the process is being captured; it spoils those captures.
void refuseDuringCapture(Driver&);

// One of several tasks that enter a stream together: an executable graph's step.
struct GroupMember {
  Operation operation;
  std::vector<size_t> before;    // earlier members
  TaskRef after;                 // something else that it waits for
  std::shared_ptr<Event> event;  // that it records, as
  std::shared_ptr<EventRecording> recorded;
  bool always = false;           // whether it is run in a context that has failed, too
};

// The stream that a handle means to the calling thread, the default ones included; refuses where its context has
// failed.
std::shared_ptr<Stream> streamOf(Context& current, CUstream handle);

// The streams of one context.
class StreamSet {
 public:
  StreamSet(Context&, Scheduler&);
  // The stream that a handle means to the calling thread, the default ones included.
  std::shared_ptr<Stream> resolve(CUstream handle);
  std::shared_ptr<Stream> create(unsigned flags, int priority);
  void forget(const Stream&);

  // Puts the operation behind the stream's work and whatever else CUDA orders it behind.
  TaskRef submit(Stream&, Operation, std::span<const TaskRef> after);
  // Puts the members behind the stream's work and behind `previous`; the stream's later work comes behind all of them.
  // Returns the task that ends last, or, where the stream is captured, `previous`: `child` is the node then. `complete`, if there is
  // such a task, is another that the end waits for; who has made it starts it.
  TaskRef submitGroup(Stream&, std::vector<GroupMember> members, TaskRef previous, const Graph& child, const TaskRef& complete);
  std::shared_ptr<Graph> endCapture(Stream&);
  // All streams leave the capture; the nodes that would have come next to theirs.
  std::vector<GraphNode*> leaveCapture(const std::shared_ptr<Capture>&);
  // Runs `action`, which is quick, once all work is over that is in any stream now; on the caller's thread if there
  // is none. Not in a context whose work has failed.
  void afterAll(Action action);
  // Work of a stream of another context counts as this context's too: until it has ended, the context is busy.
  void share(TaskRef work);
  // What a new point in the stream would wait for.
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
  // Last tasks of destroyed streams, and whether those were blocking; what comes after all work.
  std::vector<std::pair<bool, TaskRef>> orphans;
};

// While one lives, the null stream means the per-thread default stream to its thread: the `_ptsz` and `_ptds` entries.
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
