#include "intercept/session/host-functions.h"

#include <doctest/doctest.h>

#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "vgpu/wire/segment.h"

namespace vgpu::client {
namespace {

// Static storage: the functions' thread lives as long as the process, and so must what it uses.
template <typename Kept, typename... Arguments>
Kept& lasting(Arguments&&... arguments) {
  static auto& kept = *new std::deque<Kept>;
  return kept.emplace_back(std::forward<Arguments>(arguments)...);
}

struct NodeFunctions {
  Segment& segment = lasting<Segment>(Segment::create());
  CompletionWords& completions = lasting<CompletionWords>(segment);
  std::atomic<bool>& lost = lasting<std::atomic<bool>>(false);
  HostFunctions& all = lasting<HostFunctions>(segment, completions, lost, 0u);
  std::mutex& mutex = lasting<std::mutex>();
  std::vector<int>& calls = lasting<std::vector<int>>();
  const uint32_t word = *completions.take(0);

  std::function<void()> noting(int number) {
    return [&mutex = mutex, &calls = calls, number] {
      std::lock_guard lock(mutex);
      calls.push_back(number);
    };
  }
  void launch(HostFunctions::OfNode& node, uint64_t sequence) {
    node.expect(sequence);
    all.launched();
  }
  // The GPU reaches the node in that launch, and continues when the program has answered.
  void reach(uint64_t sequence) {
    segment.completionWord(word).done.store(sequence);
    while (segment.completionWord(word).answered.load() != sequence) std::this_thread::yield();
  }
  std::vector<int> called() {
    std::lock_guard lock(mutex);
    return calls;
  }
};

TEST_CASE("a node's function is called once in each launch, when the GPU reaches the node") {
  NodeFunctions functions;
  auto node = functions.all.addOfNode(functions.word, functions.noting(1));
  functions.launch(*node, 65);
  functions.launch(*node, 129);
  CHECK(functions.called().empty());
  functions.reach(65);
  CHECK(functions.called() == std::vector{1});
  functions.reach(129);
  CHECK(functions.called() == std::vector{1, 1});
}

TEST_CASE("a launch made before a change calls the old function, later launches the new one") {
  NodeFunctions functions;
  auto node = functions.all.addOfNode(functions.word, functions.noting(1));
  functions.launch(*node, 65);
  functions.all.change(*node, HostFunctions::made(functions.noting(2)));
  functions.launch(*node, 129);
  functions.launch(*node, 193);
  functions.all.change(*node, HostFunctions::made(functions.noting(3)));
  functions.all.change(*node, HostFunctions::made(functions.noting(4)));  // no launch calls the previous one
  functions.launch(*node, 257);
  for (uint64_t sequence : {65, 129, 193, 257}) functions.reach(sequence);
  CHECK(functions.called() == std::vector{1, 2, 2, 4});
}

TEST_CASE("a node that is disabled and enabled again answers every launch") {
  NodeFunctions functions;
  auto node = functions.all.addOfNode(functions.word, functions.noting(1));
  functions.all.change(*node, HostFunctions::made({}));
  functions.launch(*node, 65);
  functions.all.change(*node, HostFunctions::made(functions.noting(2)));
  functions.launch(*node, 129);
  functions.reach(65);
  functions.reach(129);
  CHECK(functions.called() == std::vector{2});
}

TEST_CASE("launches made before a node's end call its function") {
  NodeFunctions functions;
  auto node = functions.all.addOfNode(functions.word, functions.noting(1));
  functions.launch(*node, 65);
  functions.all.end(*node);
  functions.reach(65);
  CHECK(functions.called() == std::vector{1});
}

TEST_CASE("an old number in a completion word is no launch of the word's next node") {
  NodeFunctions functions;
  functions.segment.completionWord(functions.word).done.store(65);
  auto node = functions.all.addOfNode(functions.word, functions.noting(1));
  functions.launch(*node, 129);
  functions.reach(129);
  CHECK(functions.called() == std::vector{1});
}

TEST_CASE("launches of a destroyed context call nothing, later ones do") {
  NodeFunctions functions;
  auto node = functions.all.addOfNode(functions.word, functions.noting(1));
  functions.launch(*node, 65);
  functions.all.drop(100);
  functions.all.change(*node, HostFunctions::made(functions.noting(2)));
  functions.launch(*node, 129);
  functions.reach(129);
  CHECK(functions.called() == std::vector{2});
}

TEST_CASE("after a fault, callbacks that the GPU does not reach are called with the error, in order, and host functions are not") {
  NodeFunctions functions;
  const auto add = [&](uint64_t sequence, int number, HostFunctions::OnFault onFault) {
    auto call = [note = functions.noting(number)](CUresult before) {
      if (before == CUDA_ERROR_ILLEGAL_ADDRESS) note();
    };
    functions.all.add(*functions.completions.take(0), sequence, call, onFault);
  };
  add(65, 1, HostFunctions::OnFault::called);
  add(129, 2, HostFunctions::OnFault::dropped);
  add(193, 3, HostFunctions::OnFault::called);
  functions.segment.header().fault[0].store(CUDA_ERROR_ILLEGAL_ADDRESS);
  while (functions.called().size() < 2) std::this_thread::yield();
  CHECK(functions.called() == std::vector{1, 3});
}

}  // namespace
}  // namespace vgpu::client
