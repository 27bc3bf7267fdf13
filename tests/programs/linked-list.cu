// A linked list in device memory. Its head is a __device__ variable; its nodes are scattered over many allocations and point to each other,
// and each refers to its function by a pointer from a __device__ table. The CUDA API never sees these addresses as arguments, so all of
// them must be the same before and after the pause point.
#include "program.h"

#include <algorithm>
#include <numeric>
#include <random>

using Function = long long (*)(long long);

struct Node {
  long long value;
  Function apply;
  Node* next;
};

__device__ long long twice(long long value) { return 2 * value; }
__device__ long long square(long long value) { return value * value; }
__device__ long long negate(long long value) { return -value; }

__device__ Function functions[] = {twice, square, negate};
__device__ Node* head;

constexpr int functionCount = 3, slabs = 64, nodesPerSlab = 16, nodes = slabs * nodesPerSlab;

// Links node order[0] to node order[1] and so on; node n is the n % nodesPerSlab-th of slab n / nodesPerSlab.
__global__ void link(Node* const* slab, const int* order) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const auto node = [&](int n) { return slab[n / nodesPerSlab] + n % nodesPerSlab; };
  *node(order[i]) = {i, functions[i % functionCount], i + 1 < nodes ? node(order[i + 1]) : nullptr};
  if (i == 0) head = node(order[0]);
}

// One thread walks the list and applies every node's function to its value.
__global__ void walk(long long* sum, int* visited) {
  for (Node* node = head; node; node = node->next) {
    *sum += node->apply(node->value);
    ++*visited;
  }
}

// The addresses that device code sees: the list's head, then some of its nodes, then its functions and the variable that holds the head.
__global__ void showAddresses(unsigned long long* seen, int nodesSeen) {
  const Node* node = head;
  for (int i = 0; i < nodesSeen; ++i, node = node->next) *seen++ = reinterpret_cast<unsigned long long>(node);
  for (Function function : functions) *seen++ = reinterpret_cast<unsigned long long>(function);
  *seen++ = reinterpret_cast<unsigned long long>(&head);
}

// Every address of this program: those seen on the device, then those that the runtime returns for the two variables.
std::vector<unsigned long long> addresses(const char* when) {
  const int nodesSeen = 4;
  DeviceArray<unsigned long long> seen(nodesSeen + functionCount + 1);
  showAddresses<<<1, 1>>>(seen, nodesSeen);
  CHECK(cudaGetLastError());
  auto all = seen.download();
  void* symbol = nullptr;
  CHECK(cudaGetSymbolAddress(&symbol, head));
  all.push_back(reinterpret_cast<unsigned long long>(symbol));
  CHECK(cudaGetSymbolAddress(&symbol, functions));
  all.push_back(reinterpret_cast<unsigned long long>(symbol));
  // The runtime and the variable's own kernel agree on its address.
  if (!EXPECT(all[nodesSeen + functionCount] == all[nodesSeen + functionCount + 1])) std::exit(1);
  std::printf("%s:", when);
  for (auto address : all) std::printf(" %#llx", address);
  std::printf("\n");
  return all;
}

bool sumIsRight() {
  DeviceArray<long long> sum(std::vector<long long>{0});
  DeviceArray<int> visited(std::vector<int>{0});
  walk<<<1, 1>>>(sum, visited);
  CHECK(cudaGetLastError());
  long long expected = 0;
  for (long long i = 0; i < nodes; ++i) expected += i % 3 == 0 ? 2 * i : i % 3 == 1 ? i * i : -i;
  return same("nodes visited", visited.download(), {nodes}) & same("sum", sum.download(), {expected});
}

int main() {
  std::vector<Node*> slab(slabs);
  for (Node*& place : slab) CHECK(cudaMalloc(&place, nodesPerSlab * sizeof(Node)));
  std::vector<int> order(nodes);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(9));
  {
    DeviceArray<Node*> deviceSlab(slab);
    DeviceArray<int> deviceOrder(order);
    link<<<nodes / 128, 128>>>(deviceSlab, deviceOrder);
    CHECK(cudaGetLastError());
  }
  const auto before = addresses("before");
  bool ok = sumIsRight();
  pausePoint();
  ok &= same("address", addresses("after"), before) & sumIsRight();
  for (Node* place : slab) CHECK(cudaFree(place));
  return verdict("linked-list", ok);
}
