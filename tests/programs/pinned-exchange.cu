// Pinned memory that program and kernel share: they exchange words while the kernel runs, system-wide atomics of both count together, and a
// copy that waits in a stream reads what is written before it begins. Before and after a pause, in memory that was pinned before and after
// it.
//
//   pinned-exchange [MIB [copied]]   also copies MIB in pieces, of which half are freed and pinned again; `copied`: only that, so
//                                    that the memory may have two copies
#include <algorithm>

#include "program.h"

constexpr uint32_t exchanges = 6, additions = 200, pieceMiB = 3;

struct Mailbox {
  volatile uint32_t asked, answered;
  uint32_t count;
};

__global__ void answer(Mailbox* mailbox) {
  for (uint32_t i = 1; i <= exchanges; ++i) {
    while (mailbox->asked != i) __nanosleep(1000);
    __threadfence_system();
    mailbox->answered = i * 3;
  }
}

__global__ void count(Mailbox* mailbox) {
  for (uint32_t i = 0; i < additions; ++i) atomicAdd_system(&mailbox->count, 1);
}

__global__ void waitFor(const volatile uint32_t* go) {
  while (*go == 0) __nanosleep(1000);
}

bool exchange(Mailbox* mailbox) {
  mailbox->asked = mailbox->answered = 0;
  answer<<<1, 1>>>(mailbox);
  for (uint32_t i = 1; i <= exchanges; ++i) {
    mailbox->asked = i;
    while (mailbox->answered != i * 3) usleep(10);
  }
  CHECK(cudaDeviceSynchronize());
  mailbox->count = 0;
  count<<<1, 1>>>(mailbox);
  for (uint32_t i = 0; i < additions; ++i) __atomic_fetch_add(&mailbox->count, 1, __ATOMIC_SEQ_CST);
  CHECK(cudaDeviceSynchronize());
  return EXPECT(mailbox->count == 2 * additions);
}

// The copy waits behind a kernel that waits for the program.
bool copyTakesWhatIsThere(Mailbox* mailbox, uint32_t* values, uint32_t* onDevice) {
  mailbox->asked = 0;
  values[0] = 1;
  waitFor<<<1, 1>>>(&mailbox->asked);
  CHECK(cudaMemcpyAsync(onDevice, values, sizeof(uint32_t), cudaMemcpyHostToDevice));
  values[0] = 2;
  mailbox->asked = 1;
  CHECK(cudaDeviceSynchronize());
  uint32_t copied = 0;
  CHECK(cudaMemcpy(&copied, onDevice, sizeof copied, cudaMemcpyDeviceToHost));
  return EXPECT(copied == 2);
}

class Pieces {
 public:
  explicit Pieces(uint32_t mebibytes) : all(mebibytes / pieceMiB) { pinAll(); }
  ~Pieces() {
    for (auto* piece : all) CHECK(cudaFreeHost(piece));
  }
  // Frees every second piece and pins it again.
  void replaceHalf() {
    for (size_t i = 0; i < all.size(); i += 2) {
      CHECK(cudaFreeHost(all[i]));
      all[i] = nullptr;
    }
    pinAll();
  }
  bool areRight() const {
    bool ok = true;
    DeviceArray<uint32_t> onDevice(words);
    for (size_t i = 0; i < all.size() && ok; ++i) {
      CHECK(cudaMemcpyAsync(onDevice, all[i], words * sizeof(uint32_t), cudaMemcpyHostToDevice));
      CHECK(cudaMemsetAsync(onDevice, 0, sizeof(uint32_t)));
      CHECK(cudaMemcpyAsync(all[i], onDevice, words * sizeof(uint32_t), cudaMemcpyDeviceToHost));
      CHECK(cudaDeviceSynchronize());
      ok = EXPECT(all[i][0] == 0) && EXPECT(all[i][1] == i) && EXPECT(all[i][words - 1] == i);
    }
    return ok;
  }

 private:
  void pinAll() {
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i]) continue;
      CHECK(cudaMallocHost(&all[i], words * sizeof(uint32_t)));
      std::fill_n(all[i], words, static_cast<uint32_t>(i));
    }
  }
  static constexpr size_t words = pieceMiB * 1024 * 1024 / sizeof(uint32_t);
  std::vector<uint32_t*> all;
};

int main(int argumentCount, char** arguments) {
  Pieces pieces(argumentCount > 1 ? static_cast<uint32_t>(std::atoi(arguments[1])) : 0);
  if (argumentCount > 2) {
    bool ok = pieces.areRight();
    pieces.replaceHalf();
    pausePoint();
    ok = ok && pieces.areRight();
    pieces.replaceHalf();
    return verdict("pinned-exchange", ok && pieces.areRight());
  }
  Mailbox *mailbox, *later;
  uint32_t* values;
  DeviceArray<uint32_t> onDevice(1);
  CHECK(cudaHostAlloc(&mailbox, sizeof(Mailbox), cudaHostAllocMapped));
  CHECK(cudaHostAlloc(&values, 4096, cudaHostAllocDefault));
  bool ok = exchange(mailbox) && copyTakesWhatIsThere(mailbox, values, onDevice) && pieces.areRight();
  pieces.replaceHalf();
  values[1] = 4711;
  pausePoint();
  ok = ok && EXPECT(values[1] == 4711) && exchange(mailbox) && copyTakesWhatIsThere(mailbox, values, onDevice);
  ok = ok && pieces.areRight();
  CHECK(cudaHostAlloc(&later, sizeof(Mailbox), cudaHostAllocMapped));
  pieces.replaceHalf();
  ok = ok && exchange(later) && pieces.areRight();
  CHECK(cudaFreeHost(later));
  CHECK(cudaFreeHost(values));
  CHECK(cudaFreeHost(mailbox));
  return verdict("pinned-exchange", ok);
}
