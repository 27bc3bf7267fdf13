// Host functions of two devices run on two threads, so that one device's may wait for the other's: in streams, as stream callbacks and in
// graph nodes. Not applicable with fewer than two devices.
#include "await-flag.h"
#include "program.h"

namespace {

struct Flags {
  std::atomic<bool> begun{false}, ended{false};
};

void CUDART_CB waitForOther(void* data) {
  auto* flags = static_cast<Flags*>(data);
  flags->begun.store(true);
  awaitFlag(&flags->ended);
}
// So both are running at once, whichever device starts first.
void CUDART_CB endOther(void* data) {
  auto* flags = static_cast<Flags*>(data);
  awaitFlag(&flags->begun);
  flags->ended.store(true);
}

using Function = void (*)(cudaStream_t stream, cudaHostFn_t function, void* data);

void launch(cudaStream_t stream, cudaHostFn_t function, void* data) { CHECK(cudaLaunchHostFunc(stream, function, data)); }

struct Callback {
  cudaHostFn_t function;
  void* data;
};
void CUDART_CB callBack(cudaStream_t, cudaError_t error, void* data) {
  CHECK(error);
  auto* callback = static_cast<Callback*>(data);
  callback->function(callback->data);
  delete callback;
}
void addCallback(cudaStream_t stream, cudaHostFn_t function, void* data) {
  CHECK(cudaStreamAddCallback(stream, callBack, new Callback{function, data}, 0));
}

void launchNode(cudaStream_t stream, cudaHostFn_t function, void* data) {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t executable;
  const cudaHostNodeParams params = {function, data};
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddHostNode(&node, graph, nullptr, 0, &params));
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaGraphExecDestroy(executable));  // the launch keeps what it needs
  CHECK(cudaGraphDestroy(graph));
}

// The function of `first` starts first, and waits for the other device's.
bool waitsForTheOther(int first, Function give) {
  Flags flags;
  cudaStream_t streams[2];
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    CHECK(cudaStreamCreate(&streams[device]));
  }
  CHECK(cudaSetDevice(first));
  give(streams[first], waitForOther, &flags);
  awaitFlag(&flags.begun);
  CHECK(cudaSetDevice(1 - first));
  give(streams[1 - first], endOther, &flags);
  for (cudaStream_t stream : streams) {
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamDestroy(stream));
  }
  return EXPECT(flags.ended.load());
}

bool waitInEveryWay() {
  bool ok = true;
  for (int first : {0, 1})
    for (Function give : {launch, addCallback, launchNode}) ok &= waitsForTheOther(first, give);
  return ok;
}

}  // namespace

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2) return getenv("VGPU_EMULATED") == nullptr ? notHere : 1;  // the emulated driver must have two devices
  bool ok = waitInEveryWay();
  pausePoint();
  ok &= waitInEveryWay();
  return verdict("callbacks-apart", ok);
}
