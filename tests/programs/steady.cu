// Works without a pause until a file appears, and then checks that no call was lost, repeated or reordered: the CPU executes the same
// steps, and the GPU's results must equal the CPU's.
//
//   steady FILE [lose]    ends after the step in which FILE exists; `lose` omits that step's first launch, which must be detected
#include "program.h"

const uint32_t elements = 1 << 16, nodes = 64;
const uint32_t keptElements = 1 << 20;  // more than a snapshot has in one chunk

// The two operations do not commute, so that reordering, loss and repetition all show.
__global__ void multiply(uint32_t* values, uint32_t factor) {
  values[blockIdx.x * blockDim.x + threadIdx.x] *= factor;
}
__global__ void add(uint32_t* values, const uint32_t* summands, uint32_t count) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  values[i] += summands[i % count];
}

struct Node {
  Node* next;
  uint32_t value;
};
__global__ void link(Node* node, Node* next, uint32_t value) { *node = {next, value}; }
__global__ void walk(const Node* first, uint32_t* sum) {
  *sum = 0;
  for (const Node* node = first; node; node = node->next) *sum += node->value;
}

constexpr uint32_t questions = 256;
__host__ __device__ constexpr uint32_t answerTo(uint32_t question) { return question * 2654435761u + 1; }
constexpr uint32_t logPages = 64, pageWords = 4096 / sizeof(uint32_t);
__global__ void answer(uint32_t* mailbox, uint32_t* page) {
  mailbox[questions + threadIdx.x] = answerTo(mailbox[threadIdx.x]);
  if (threadIdx.x == 0) *page = answerTo(mailbox[0]);
}

// Pinned memory that program and kernel write in turn, and a log: pages that only kernels write and the program reads. Once per step, the
// program waits in between.
class Mailbox {
 public:
  Mailbox() {
    CHECK(cudaHostAlloc(&words, 2 * questions * sizeof(uint32_t), cudaHostAllocMapped));
    CHECK(cudaHostAlloc(&log, logPages * pageWords * sizeof(uint32_t), cudaHostAllocMapped));
  }
  ~Mailbox() {
    CHECK(cudaFreeHost(log));
    CHECK(cudaFreeHost(words));
  }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Whether all questions are answered: of the last one all words, of earlier ones those that the log still has.
  bool isAnswered() const {
    bool ok = true;
    for (uint32_t i = 0; asked != 0 && i < questions; ++i) ok &= words[questions + i] == answerTo(asked + i);
    for (uint32_t i = 0; i < logPages && i < asked; ++i) ok &= *pageOf(asked - i) == answerTo(asked - i);
    return ok;
  }
  // Questions are 1, 2, …
  void ask(uint32_t question) {
    asked = question;
    for (uint32_t i = 0; i < questions; ++i) words[i] = asked + i;
    answer<<<1, questions>>>(words, pageOf(asked));
  }

 private:
  uint32_t* pageOf(uint32_t question) const { return log + question % logPages * pageWords; }
  uint32_t *words = nullptr, *log = nullptr;
  uint32_t asked = 0;
};

// A ring of allocations whose device addresses are stored on the device; one is replaced in each step.
class DeviceList {
 public:
  void replaceOldest(uint32_t step) {
    if (list.size() == nodes) {
      CHECK(cudaFree(list.front().first));
      list.erase(list.begin());
    }
    Node* node;
    CHECK(cudaMalloc(&node, sizeof(Node)));
    list.push_back({node, step});
    for (size_t i = list.size() < 2 ? 0 : list.size() - 2; i < list.size(); ++i)
      link<<<1, 1>>>(list[i].first, i + 1 < list.size() ? list[i + 1].first : nullptr, list[i].second);
  }
  bool isRight() const {
    uint32_t sum = 0;
    for (auto& [node, value] : list) sum += value;
    DeviceArray<uint32_t> onDevice(1);
    walk<<<1, 1>>>(list.front().first, onDevice);
    return EXPECT(onDevice.download()[0] == sum);
  }

 private:
  std::vector<std::pair<Node*, uint32_t>> list;
};

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "steady FILE [lose]\n");
    return 2;
  }
  const bool loses = count > 2;
  std::vector<uint32_t> expected(elements), summands(256), back(elements);
  for (uint32_t i = 0; i < elements; ++i) expected[i] = i;
  DeviceArray<uint32_t> values(expected), moved(256);
  std::vector<uint32_t> kept(keptElements);
  for (uint32_t i = 0; i < keptElements; ++i) kept[i] = i * 2654435761u;
  DeviceArray<uint32_t> keptOnDevice(kept);
  cudaStream_t other;
  cudaEvent_t ready, done;
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&ready));
  CHECK(cudaEventCreate(&done));
  DeviceList list;
  Mailbox mailbox;
  std::printf("steady: begins\n");
  std::fflush(stdout);
  bool ok = true;
  uint32_t step = 0;
  for (bool last = false; !last && ok; ++step) {
    last = access(arguments[1], F_OK) == 0;
    const uint32_t factor = 2 * step + 3;
    for (uint32_t i = 0; i < summands.size(); ++i) summands[i] = step * 257 + i;
    for (uint32_t i = 0; i < elements; ++i) expected[i] = expected[i] * factor + summands[i % 256];
    // In the default stream, then in another one behind an event, and back again.
    moved.upload(summands);
    ok = EXPECT(mailbox.isAnswered());
    mailbox.ask(step + 1);
    if (!last || !loses) multiply<<<elements / 256, 256>>>(values, factor);
    CHECK(cudaEventRecord(ready));
    CHECK(cudaStreamWaitEvent(other, ready, 0));
    add<<<elements / 256, 256, 0, other>>>(values, moved, 256);
    CHECK(cudaEventRecord(done, other));
    CHECK(cudaStreamWaitEvent(cudaStreamLegacy, done, 0));
    list.replaceOldest(step);
    if (step % 16 == 15 || last) {
      values.copyOut(back);
      ok = ok && same("values", back, expected) && list.isRight();
    }
  }
  ok = ok && same("kept", keptOnDevice.download(), kept);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaEventDestroy(done));
  CHECK(cudaEventDestroy(ready));
  CHECK(cudaStreamDestroy(other));
  std::printf("steady: %s\n", ok ? "ok" : "wrong");
  return ok ? 0 : 1;
}
