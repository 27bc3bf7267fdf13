// An event made after another was destroyed may get the same address, but must be new: without a record, a time, or anything that waits for
// it, whatever the destroyed event had.
#include <set>

#include "await-flag.h"
#include "program.h"

namespace {

constexpr int count = 100;
// Recorded behind running work: the driver blocks in a record if too many blocking-sync events are pending (docs/facts.md).
constexpr int waiting = 40;

// Makes and destroys that many events, each with a completed record.
void makeAndEnd(cudaStream_t stream, unsigned flags) {
  std::vector<cudaEvent_t> events(count);
  for (cudaEvent_t& each : events) {
    CHECK(cudaEventCreateWithFlags(&each, flags));
    CHECK(cudaEventRecord(each, stream));
  }
  CHECK(cudaStreamSynchronize(stream));
  for (cudaEvent_t each : events) CHECK(cudaEventDestroy(each));
}

// Checks the queries of a new event, and that waiting for it returns at once.
bool isNew(cudaEvent_t event, cudaEvent_t timed, cudaStream_t stream) {
  float milliseconds = 0;
  bool ok = EXPECT_ERROR(cudaEventQuery(event), cudaSuccess) & EXPECT_ERROR(cudaEventSynchronize(event), cudaSuccess) &
            EXPECT_ERROR(cudaEventElapsedTime(&milliseconds, timed, event), cudaErrorInvalidResourceHandle) &
            EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamWaitEvent(stream, event, 0));
  CHECK(cudaStreamSynchronize(stream));
  return ok;
}

}  // namespace

int main() {
  cudaStream_t slow, fast;
  CHECK(cudaStreamCreateWithFlags(&slow, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&fast, cudaStreamNonBlocking));
  cudaEvent_t timed;
  CHECK(cudaEventCreate(&timed));
  CHECK(cudaEventRecord(timed, fast));
  CHECK(cudaEventSynchronize(timed));
  bool ok = true;
  for (unsigned flags : {cudaEventDefault, cudaEventDisableTiming, cudaEventBlockingSync}) {
    makeAndEnd(fast, flags);
    if (flags == cudaEventDisableTiming) pausePoint();  // while there are destroyed events
    std::vector<cudaEvent_t> events(count);
    for (cudaEvent_t& each : events) CHECK(cudaEventCreateWithFlags(&each, flags));
    ok &= EXPECT(std::set<cudaEvent_t>(events.begin(), events.end()).size() == count);
    for (cudaEvent_t each : events) ok &= isNew(each, timed, fast);

    // An event recorded behind running work is waited for, by a stream and by the host, like any other.
    std::atomic<bool> go{false};
    CHECK(cudaLaunchHostFunc(slow, awaitFlag, &go));
    for (int i = 0; i < waiting; ++i) CHECK(cudaEventRecord(events[i], slow));
    ok &= EXPECT_ERROR(cudaEventQuery(events[waiting - 1]), cudaErrorNotReady);
    CHECK(cudaStreamWaitEvent(fast, events.front(), 0));
    ok &= EXPECT_ERROR(cudaStreamQuery(fast), cudaErrorNotReady);
    go = true;
    CHECK(cudaStreamSynchronize(fast));
    CHECK(cudaStreamSynchronize(slow));
    if (flags == cudaEventDefault) {
      float milliseconds = -1;
      ok &= EXPECT_ERROR(cudaEventElapsedTime(&milliseconds, timed, events[waiting - 1]), cudaSuccess) & EXPECT(milliseconds > 0);
    }
    if (flags == cudaEventBlockingSync) pausePoint();  // while there are reused events with records
    for (cudaEvent_t each : events) ok &= EXPECT_ERROR(cudaEventQuery(each), cudaSuccess);

    // In graphs: in a capture, and as nodes.
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(fast, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaEventRecord(events[0], fast));
    CHECK(cudaStreamWaitEvent(slow, events[0], 0));
    CHECK(cudaEventRecord(events[1], slow));
    CHECK(cudaStreamWaitEvent(fast, events[1], 0));
    CHECK(cudaStreamEndCapture(fast, &graph));
    CHECK(cudaGraphDestroy(graph));
    for (cudaEvent_t each : events) CHECK(cudaEventDestroy(each));
    for (cudaEvent_t& each : events) CHECK(cudaEventCreateWithFlags(&each, flags));
    for (cudaEvent_t each : events) ok &= isNew(each, timed, fast);

    cudaGraphNode_t recorded, awaited;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddEventWaitNode(&awaited, graph, nullptr, 0, events[2]));
    CHECK(cudaGraphAddEventRecordNode(&recorded, graph, &awaited, 1, events[3]));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, fast));
    CHECK(cudaEventSynchronize(events[3]));
    CHECK(cudaStreamSynchronize(fast));
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    for (cudaEvent_t each : events) CHECK(cudaEventDestroy(each));
  }
  CHECK(cudaDeviceReset());
  CHECK(cudaEventCreate(&timed));
  CHECK(cudaEventRecord(timed));
  CHECK(cudaEventSynchronize(timed));
  return verdict("events-made-again", ok);
}
