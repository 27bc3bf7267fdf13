// Calls that are slow by nature, as compiling and loading a module, on a thread beside that of their GPU: its ring goes on meanwhile.
//
// A call has two parts. Its work makes the slow calls of the driver, on the helper thread with the GPU's context. Then its end runs
// on the GPU's thread, between two frames: it notes what has been made, and gives the reply. The calls run one at a time in the
// order in which they were added, and a call's work begins after the end of the one before it. So what only such calls use
// (ModuleGroups, what is known of an image) needs no lock.
//
// The GPU's thread owns it, or the one that works while no calls are executed. The helper thread is started by the first call;
// where the system has no thread for it, a call's work runs on the thread that begins it, and the next call tries again. `mutex`
// guards what the two share; only `wake` is called under it. At a barrier all have ended (Worker::quiesce): of this a suspend keeps
// nothing.
#pragma once

#include <cuda.h>
#include <kj/exception.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace vgpu::stub {

class SlowCalls {
 public:
  using Work = std::function<CUresult()>;
  using End = std::function<void(CUresult)>;

  // `begin` is run on the helper thread before anything else there.
  explicit SlowCalls(std::function<void()> begin) : begin(std::move(begin)) {}
  // Waits for the work that is under way; nothing else is run.
  ~SlowCalls();
  SlowCalls(const SlowCalls&) = delete;
  SlowCalls& operator=(const SlowCalls&) = delete;

  // `end` is told the work's result. An exception of the work's comes out of poll(). `name`: for a person who waits for it.
  void add(Work work, End end, const char* name = "");
  // Runs `rest` behind the calls that have been added: at once if all have ended.
  void afterAll(std::function<void()> rest);
  bool isEmpty() const { return calls.empty(); }
  // The name of the call that is under way or next. Not if it is empty.
  const char* first() const { return calls.front().name; }

  // Runs the end of a call whose work is done, and gives the next work to the thread.
  void poll();
  // Whether poll() would run an end. If not, `wake` is called when it would.
  bool isDue();
  // Waits for all of them, so long at most, and runs their ends. Whether none is left.
  bool finish(std::chrono::milliseconds limit);

  // `wake` is called, on the helper thread, when a work is done. Empty: nobody waits.
  void setWake(std::function<void()> wake);

 private:
  struct Call {
    Work work;  // empty: there is an end only
    End end;
    const char* name = "";
  };
  void run();
  void runGiven(std::unique_lock<std::mutex>& lock, bool isFirst);
  void beginFirst();
  bool takeResult(CUresult& result);

  const std::function<void()> begin;
  std::deque<Call> calls;  // the first is under way, if `started`
  bool started = false;

  std::mutex mutex;
  std::condition_variable changed;
  const Work* given = nullptr;  // what the thread is to do, or does
  bool done = false, ending = false;
  CUresult result = CUDA_SUCCESS;
  kj::Maybe<kj::Exception> failure;
  std::function<void()> wake;
  std::thread thread;
};

}  // namespace vgpu::stub
