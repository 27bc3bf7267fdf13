// Changes of executable graphs that fail, in the worker or because the program is out of memory: the graph is unchanged, and so are the
// calls that the program makes for its nodes.
#include <doctest/doctest.h>

#include <cstdlib>
#include <new>

#include "../fake-session.h"
#include "intercept/session/graph/executable.h"

namespace {

// How many allocations of this thread succeed before one fails; negative: all succeed.
thread_local int allocationsLeft = -1;

void* allocate(size_t bytes) {
  if (allocationsLeft >= 0 && allocationsLeft-- == 0) return nullptr;
  return std::malloc(bytes);
}

}  // namespace

void* operator new(size_t bytes) {
  if (void* memory = allocate(bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace vgpu::client {
namespace {

// Calls `change` with one more successful allocation each time until it succeeds, and `check` after each failure. Returns the number of
// failures.
template <typename Change, typename Check>
int withoutMemory(Change&& change, Check&& check) {
  for (int enough = 0;; ++enough) {
    allocationsLeft = enough;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    try {
      result = change();
    } catch (const std::bad_alloc&) {
    }
    allocationsLeft = -1;
    if (result == CUDA_SUCCESS) return enough;
    CHECK(result == CUDA_ERROR_OUT_OF_MEMORY);
    check();
  }
}

constexpr uint64_t place = 0x2000'0000'0000;

void CUDA_CB addOne(void* to) { ++*static_cast<std::atomic<int>*>(to); }

// A graph with a host function, and a conditional body with a fill that runs if the condition's default says so.
struct Conditional {
  Conditional(FakeSession& fake, std::atomic<int>& counter, unsigned runs) : graph(fake.session.graphs.make()) {
    const uint64_t condition = graph->conditions->add(runs, CU_GRAPH_COND_ASSIGN_DEFAULT);
    graph->conditions->find(condition)->isUsed = true;
    auto body = fake.session.graphs.makeBody(graph->conditions);
    graph->add(HostWork{{addOne, &counter}}, {});
    fill = body->add(FillWork{{place, 0, 1, 4, 1, 1}}, {}).handle;
    graph->add(ConditionalWork{condition, CU_GRAPH_COND_TYPE_IF, {body}, nullptr}, {});
  }
  std::shared_ptr<Graph> graph;
  uint64_t fill = 0;
};

std::shared_ptr<Executable> instantiate(Thread& thread, const Graph& graph) {
  uint64_t made = 0;
  Executable::Problem problem;
  REQUIRE(Executable::instantiate(thread, graph, 0, made, problem) == CUDA_SUCCESS);
  return Executable::find(thread, made);
}

struct TwoGraphs {
  FakeSession& fake = FakeSession::one();
  Thread& thread = fake.thread();
  std::atomic<int> first{0}, second{0};
  Conditional now{fake, first, 1}, wanted{fake, second, 0};
};

TEST_CASE_FIXTURE(TwoGraphs, "if the worker's graph cannot be remade, launches use the previous one and the program makes the same calls") {
  auto executable = instantiate(thread, *now.graph);
  REQUIRE(executable->launch(thread, 0) == CUDA_SUCCESS);
  const uint64_t before = fake.launched();
  CHECK(first == 1);

  fake.answer(api::Method::graphInstantiate, CUDA_ERROR_OUT_OF_MEMORY);
  const size_t ended = fake.count(api::Method::graphEnd);
  Executable::Problem problem;
  CHECK(executable->update(thread, *wanted.graph, problem) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(executable->setEnabled(thread, now.fill, false) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(*executable->findEnabled(now.fill));
  CHECK(fake.count(api::Method::graphEnd) == ended + 2);  // the attempt's graphs
  REQUIRE(executable->launch(thread, 0) == CUDA_SUCCESS);
  CHECK(fake.launched() == before);
  CHECK(first == 2);
  CHECK(second == 0);

  fake.answer(api::Method::graphInstantiate, CUDA_SUCCESS);
  REQUIRE(executable->update(thread, *wanted.graph, problem) == CUDA_SUCCESS);
  REQUIRE(executable->launch(thread, 0) == CUDA_SUCCESS);
  CHECK(fake.launched() != before);
  CHECK(first == 2);
  CHECK(second == 1);
}

TEST_CASE("the worker's part of a remade graph is not an object that ends with its context") {
  FakeSession& fake = FakeSession::one();
  Thread& thread = fake.thread();
  std::atomic<int> counter{0};
  Conditional now(fake, counter, 1);
  auto live = [&] { return fake.session.handles.live(api::Kind::GRAPH_EXEC, 0, thread.owner()); };
  const size_t others = live().size();
  auto executable = instantiate(thread, *now.graph);
  const auto handles = live();
  REQUIRE(handles.size() == others + 1);
  const size_t ended = fake.count(api::Method::graphEnd);
  for (bool enabled : {false, true}) CHECK(executable->setEnabled(thread, now.fill, enabled) == CUDA_SUCCESS);
  CHECK(live() == handles);
  CHECK(fake.count(api::Method::graphEnd) == ended + 2);
  for (uint64_t handle : handles)
    if (Executable::find(thread, handle) == executable) CHECK(Executable::end(thread, handle) == CUDA_SUCCESS);
  CHECK(live().size() == others);
  CHECK(fake.count(api::Method::graphEnd) == ended + 3);
}

TEST_CASE_FIXTURE(TwoGraphs, "a completion word of a graph that could not be made is reused") {
  const int from = 5, other = 6;
  int to = 0;
  auto onHost = [&](const int& source, Where where) {
    CopyWork copy;
    copy.from = CopyEnd::memory(toWire(&source), sizeof from, sizeof from);
    copy.to = CopyEnd::memory(toWire(&to), sizeof to, sizeof to);
    copy.size = {sizeof from, 1, 1};
    copy.fromWhere = copy.toWhere = where;
    return copy;
  };
  // The GPU copies between pinned places, the program between pageable ones.
  now.graph->add(onHost(other, Where::arena), {});
  wanted.graph->add(onHost(from, Where::pageable), {});
  auto executable = instantiate(thread, *now.graph);
  fake.answer(api::Method::graphInstantiate, CUDA_ERROR_OUT_OF_MEMORY);
  Executable::Problem problem;
  auto next = [&] {
    const uint32_t word = *fake.session.completionWords.take(0);
    fake.session.completionWords.give(word, 0);
    return word;
  };
  const uint32_t free = next();
  CHECK(executable->update(thread, *wanted.graph, problem) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(next() == free);
  REQUIRE(executable->launch(thread, 0) == CUDA_SUCCESS);
  fake.launched();
  CHECK(to == 0);
  fake.answer(api::Method::graphInstantiate, CUDA_SUCCESS);
  REQUIRE(executable->update(thread, *wanted.graph, problem) == CUDA_SUCCESS);
  REQUIRE(executable->launch(thread, 0) == CUDA_SUCCESS);
  fake.launched();
  CHECK(to == 5);
}

TEST_CASE("a copy of pageable memory whose removal failed is still made") {
  FakeSession& fake = FakeSession::one();
  Thread& thread = fake.thread();
  auto graph = fake.session.graphs.make();
  int value = 1;
  CopyWork copy;
  copy.from = CopyEnd::memory(toWire(&value), sizeof value, sizeof value);
  copy.to = CopyEnd::memory(place, sizeof value, sizeof value);
  copy.size = {sizeof value, 1, 1};
  copy.fromWhere = Where::pageable;
  copy.toWhere = Where::device;
  const uint64_t node = graph->add(copy, {}).handle;
  auto executable = instantiate(thread, *graph);
  const int* staged = fromWire<const int*>(fake.copiedFrom());
  REQUIRE(executable->launch(thread, 0) == CUDA_SUCCESS);
  fake.launched();
  CHECK(*staged == 1);
  auto isMade = [&] {
    ++value;
    REQUIRE(executable->launch(thread, 0) == CUDA_SUCCESS);
    fake.launched();
    CHECK(*executable->findEnabled(node));
    CHECK(*staged == value);
  };
  CHECK(withoutMemory([&] { return executable->setEnabled(thread, node, false); }, isMade) > 0);
  CHECK_FALSE(*executable->findEnabled(node));
  ++value;
  REQUIRE(executable->launch(thread, 0) == CUDA_SUCCESS);
  fake.launched();
  CHECK(*staged == value - 1);
}

TEST_CASE_FIXTURE(TwoGraphs, "if the program runs out of memory while the worker's graph is remade, launches use the previous one") {
  auto executable = instantiate(thread, *now.graph);
  REQUIRE(executable->launch(thread, 0) == CUDA_SUCCESS);
  const uint64_t before = fake.launched();
  auto isAsBefore = [&, launches = 1]() mutable {
    REQUIRE(executable->launch(thread, 0) == CUDA_SUCCESS);
    CHECK(fake.launched() == before);
    CHECK(first == ++launches);
    CHECK(second == 0);
    CHECK(*executable->findEnabled(now.fill));
  };
  Executable::Problem problem;
  CHECK(withoutMemory([&] { return executable->update(thread, *wanted.graph, problem); }, isAsBefore) > 0);
  REQUIRE(executable->launch(thread, 0) == CUDA_SUCCESS);
  CHECK(fake.launched() != before);
  CHECK(second == 1);
}

}  // namespace
}  // namespace vgpu::client
