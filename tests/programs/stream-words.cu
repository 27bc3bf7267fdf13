// Operations of a stream on words of pinned memory, which the host writes beside them: each side sees what the other has written.
#include "exported-entry.h"

namespace {

__global__ void copyWord(unsigned* to, const unsigned* from) { *to = *from; }

struct Words {
  Words() {
    CHECK(cudaMallocHost(&at, 16 * sizeof *at));
    for (int i = 0; i < 16; ++i) at[i] = 0;
  }
  ~Words() { CHECK(cudaFreeHost(const_cast<unsigned*>(at))); }
  CUdeviceptr operator()(int i) const { return reinterpret_cast<CUdeviceptr>(at + i); }
  volatile unsigned* at = nullptr;
};

bool seeEachOther(const Words& words, cudaStream_t stream, unsigned first) {
  bool ok = true;
  for (unsigned round = first; round < first + 3; ++round) {
    words.at[0] = round;  // a page of the host's
    ok &= WORKS(cuStreamWriteValue32_v2, stream, words(1), 10 + round, 0);
    CHECK(cudaStreamSynchronize(stream));
    ok &= EXPECT(words.at[0] == round) & EXPECT(words.at[1] == 10 + round);
    words.at[2] = 20 + round;
    ok &= WORKS(cuStreamWaitValue32_v2, stream, words(2), 20 + round, CU_STREAM_WAIT_VALUE_EQ);
    ok &= WORKS(cuStreamWriteValue64_v2, stream, words(4), uint64_t{round} << 32 | 5, 0);
    CHECK(cudaStreamSynchronize(stream));
    words.at[6] = round;
    ok &= WORKS(cuStreamWaitValue64_v2, stream, words(4), uint64_t{round} << 32 | 5, CU_STREAM_WAIT_VALUE_EQ);
    copyWord<<<1, 1, 0, stream>>>(const_cast<unsigned*>(words.at + 7), const_cast<unsigned*>(words.at + 1));
    CHECK(cudaStreamSynchronize(stream));
    ok &= EXPECT(words.at[2] == 20 + round) & EXPECT(words.at[4] == 5) & EXPECT(words.at[5] == round) & EXPECT(words.at[6] == round) &
          EXPECT(words.at[7] == 10 + round);
  }
  return ok;
}

}  // namespace

int main() {
  alarm(60);
  Words words;
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  bool ok = seeEachOther(words, stream, 1);
  pausePoint();
  ok &= seeEachOther(words, stream, 100);
  CHECK(cudaStreamDestroy(stream));
  return verdict("stream-words", ok);
}
