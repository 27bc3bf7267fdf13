// Costs of the most common CUDA calls for the program that makes them, one group at a time:
//   calls --bench full|quick GROUP
// The groups are at the end.
#include <dlfcn.h>

#include <atomic>
#include <fstream>
#include <future>
#include <string>
#include <thread>

#include "bench.h"
#include "driver-entry.h"

constexpr size_t KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;

__global__ void nothing(float*, float*, float*, int, float) {}
__global__ void twice(const float* from, float* to, size_t count) {
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) to[i] = 2 * from[i];
}

void launch() { nothing<<<1, 32>>>(nullptr, nullptr, nullptr, 0, 1.f); }
void wait() { CHECK(cudaDeviceSynchronize()); }
void none() {}

void launchMany(int launches) {
  for (int i = 0; i < launches; ++i) launch();
  wait();
}

std::string sizeName(size_t bytes) {
  if (bytes >= GiB) return std::to_string(bytes / GiB) + " GiB";
  if (bytes >= MiB) return std::to_string(bytes / MiB) + " MiB";
  if (bytes >= KiB) return std::to_string(bytes / KiB) + " KiB";
  return std::to_string(bytes) + " B";
}

double residentKiB() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmRSS:" && status >> word) return std::stod(word);
  }
  std::fprintf(stderr, "calls: /proc/self/status has no VmRSS\n");
  std::exit(1);
}

// A program that copies nothing: the time of its first call, and its memory before that and after some launches.
void measureStart(const Bench&) {
  printFigure("resident before the first call", "KiB", residentKiB());
  const auto start = Clock::now();
  CHECK(cudaFree(nullptr));
  printFigure("first CUDA call", "us", microsecondsSince(start));
  launchMany(1000);
  printFigure("resident after 1,000 launches", "KiB", residentKiB());
}

void measureLaunches(const Bench& bench) {
  launchMany(1);
  measure("posted launch", bench.size(15, 3), bench.size(500, 50), launch, wait);
  const int many = bench.size(20000, 200);
  measure(
      "sustained launches, " + std::to_string(many), bench.size(5, 1), 1, [&] { launchMany(many); }, none);
  measure(
      "launch + wait", bench.size(3000, 50), 1, [] { launchMany(1); }, none);
  DeviceArray<int> value(1);
  int read;
  const auto step = [&] {
    for (int i = 0; i < 200; ++i) launch();
    CHECK(cudaMemcpy(&read, value, sizeof read, cudaMemcpyDeviceToHost));
  };
  measure("200 launches and a read of 4 B", bench.size(100, 3), 1, step, none);
  measure("idle synchronize", bench.size(30, 3), 100, wait, none);
  cudaEvent_t event;
  CHECK(cudaEventCreate(&event));
  const auto recordAndWait = [&] {
    CHECK(cudaEventRecord(event));
    CHECK(cudaEventSynchronize(event));
  };
  measure("event record + synchronize", bench.size(3000, 50), 1, recordAndWait, none);
  measure(
      "query of a finished event", bench.size(30, 3), 100, [&] { CHECK(cudaEventQuery(event)); }, none);
  CHECK(cudaEventDestroy(event));
}

void measureAllocation(const Bench& bench) {
  void* memory;
  const auto ofDevice = [&] {
    CHECK(cudaMalloc(&memory, MiB));
    CHECK(cudaFree(memory));
  };
  measure("malloc + free, 1 MiB", bench.size(300, 10), 1, ofDevice, none);
  const size_t bytes = bench.size(GiB, 4 * MiB);
  const auto ofHost = [&] {
    CHECK(cudaMallocHost(&memory, bytes));
    CHECK(cudaFreeHost(memory));
  };
  measure("malloc + free, pinned, " + sizeName(bytes), bench.size(2, 1), 1, ofHost, none);

  // A typical step of a program that keeps nothing: two vectors, work that reads one and writes the other, all on a thread that ends with
  // the step.
  const size_t count = bytes / sizeof(float);
  const auto step = [&] {
    std::async(std::launch::async, [&] {
      DeviceArray<float> from(count), to(count);
      CHECK(cudaMemset(from, 0, bytes));
      twice<<<1024, 256>>>(from, to, count);
      wait();
    }).get();
  };
  step();
  measure("two vectors of " + sizeName(bytes) + " in a fresh thread", bench.size(20, 2), 1, step, none);
}

// Host memory whose pages are resident.
class HostBuffer {
 public:
  HostBuffer(size_t bytes, bool pinned) : pinned(pinned) {
    if (pinned) {
      CHECK(cudaMallocHost(&data, bytes));
    } else if (!(data = std::malloc(bytes))) {
      std::fprintf(stderr, "calls: no %zu bytes of host memory\n", bytes);
      std::exit(1);
    }
    std::memset(data, 1, bytes);
  }
  ~HostBuffer() {
    if (pinned) {
      CHECK(cudaFreeHost(data));
    } else {
      std::free(data);
    }
  }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  operator void*() const { return data; }
  const char* kind() const { return pinned ? "pinned" : "pageable"; }

 private:
  void* data = nullptr;
  bool pinned;
};

// Incompressible bytes, because a link may compress.
void fillAtRandom(void* data, size_t bytes) {
  uint64_t state = 88172645463325252u;  // xorshift64
  for (uint64_t *at = static_cast<uint64_t*>(data), *end = at + bytes / sizeof *at; at != end; *at++ = state) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
  }
}

// An image with margins: rows with gaps on both sides, in `host` and `device`, which have room for them.
void measureRows(const Bench& bench, const HostBuffer& host, char* device) {
  const size_t width = 256, pitch = 320, height = bench.size(4096, 64);
  const int rounds = bench.size(100, 3);
  const std::string which =
      std::string(", ") + host.kind() + ", " + sizeName(width * height) + " in " + std::to_string(height) + " rows";
  const auto in = [&] { CHECK(cudaMemcpy2D(device, pitch, host, pitch, width, height, cudaMemcpyHostToDevice)); };
  const auto out = [&] { CHECK(cudaMemcpy2D(host, pitch, device, pitch, width, height, cudaMemcpyDeviceToHost)); };
  measure("copy to device" + which, rounds, 1, in, wait);
  measure("copy from device" + which, rounds, 1, out, none);
}

void measureCopies(const Bench& bench, bool pinned) {
  struct Size {
    size_t bytes;
    int rounds;
  };
  const Size sizes[] = {{4, 500}, {4 * KiB, 500}, {64 * KiB, 500}, {MiB, 200}, {16 * MiB, 30}, {256 * MiB, 8}};
  const size_t most = bench.size(256 * MiB, MiB);
  const HostBuffer host(most, pinned);
  fillAtRandom(host, most);
  DeviceArray<char> device(most);
  for (auto [bytes, rounds] : sizes) {
    if (bytes > most) break;
    rounds = bench.size(rounds, 3);
    const std::string which = std::string(", ") + host.kind() + ", " + sizeName(bytes);
    const auto in = [&, bytes = bytes] { CHECK(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice)); };
    const auto out = [&, bytes = bytes] { CHECK(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost)); };
    measure("copy to device" + which, rounds, 1, in, wait);
    measure("copy from device" + which, rounds, 1, out, none);
  }
  measureRows(bench, host, device);
}

// A module of many empty kernels.
std::string imageOf(int kernels) {
  std::string text = ".version 7.5\n.target sm_75\n.address_size 64\n";
  for (int i = 0; i < kernels; ++i) text += ".visible .entry kernel" + std::to_string(i) + "()\n{\n  ret;\n}\n";
  return text;
}

// Queries about kernels that programs and libraries make, some before each launch.
void measureQueries(const Bench& bench) {
  const int kernels = bench.size(2000, 100), rounds = bench.size(15, 3);
  CHECK(cudaFree(nullptr));
  const auto getFunction = DRIVER(cuModuleGetFunction);
  std::vector<std::string> names;
  for (int i = 0; i < kernels; ++i) names.push_back("kernel" + std::to_string(i));
  const auto lookUpAll = [&](CUmodule module) {
    CUfunction function;
    for (auto& name : names) check(getFunction(&function, module, name.c_str()), "cuModuleGetFunction");
  };
  const std::string image = imageOf(kernels), which = " of " + std::to_string(kernels);
  CUmodule module;
  CALL(cuModuleLoadData, &module, image.c_str());
  const auto start = Clock::now();
  lookUpAll(module);
  printFigure("first look-up of a kernel" + which, "us", microsecondsSince(start) / kernels);
  std::vector<double> again;
  for (int round = 0; round < rounds; ++round) {
    const auto begun = Clock::now();
    lookUpAll(module);
    again.push_back(microsecondsSince(begun) / kernels);
  }
  printFigure("look-up of a kernel again" + which, "us", median(again));
  CALL(cuModuleUnload, module);

  launchMany(1);
  cudaFuncAttributes attributes;
  int grid, block;
  measure(
      "attributes of a kernel", rounds, 20, [&] { CHECK(cudaFuncGetAttributes(&attributes, nothing)); }, none);
  measure(
      "best block size", rounds, 5, [&] { CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, nothing, 0, 0)); }, none);
}

void measureManyCalls(const Bench& bench) {
  const int many = bench.size(20000, 500);
  const auto start = Clock::now();
  launchMany(many);
  printFigure("the first " + std::to_string(many) + " launches", "us", microsecondsSince(start));
}

// Through buffers of a realistic size, far smaller than the amount of data.
void measureMuchData(const Bench& bench) {
  const size_t buffer = bench.size(512 * MiB, MiB), passes = bench.size(16, 4);
  DeviceArray<char> device(buffer);
  for (bool pinned : {false, true}) {
    const HostBuffer host(buffer, pinned);
    const auto start = Clock::now();
    for (size_t i = 0; i < passes; ++i) {
      CHECK(cudaMemcpy(device, host, buffer, cudaMemcpyHostToDevice));
      CHECK(cudaMemcpy(host, device, buffer, cudaMemcpyDeviceToHost));
    }
    const std::string amount = sizeName(passes * buffer) + " in and out, ";
    printFigure(amount + host.kind(), "us", microsecondsSince(start));
  }
}

__global__ void spin(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

// Runs `body` for device 0 and `other` for device 1, each on its own thread, starting at the same time.
template <typename Body, typename Other>
void together(Body body, Other other) {
  std::atomic<int> ready{0};
  auto run = [&](int device, auto& work) {
    CHECK(cudaSetDevice(device));
    launchMany(100);
    ++ready;
    while (ready < 2) {
    }
    work();
  };
  std::thread second([&] { run(1, other); });
  run(0, body);
  second.join();
}

// How two GPUs of a program affect each other. Prints nothing if there is only one.
void measureTwoGpus(const Bench& bench) {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2) return;
  const int many = bench.size(100000, 200), queued = bench.size(3000, 100), rate = bench.size(300000, 200);
  auto launches = [](int count) {
    return [count] {
      const auto start = Clock::now();
      launchMany(count);
      return microsecondsSince(start) / count;
    };
  };
  double alone = 0, first = 0, second = 0;
  together([&] { alone = launches(many)(); }, [] {});
  printFigure("a launch of " + std::to_string(many) + ", one GPU of two", "us", alone);
  together([&] { first = launches(many)(); }, [&] { second = launches(many)(); });
  printFigure("a launch of " + std::to_string(many) + ", two GPUs at once", "us", std::max(first, second));

  // The launching thread blocks while its stream is full, so when it has posted all launches, only the last of them are pending.
  std::atomic<bool> posted{false};
  std::vector<double> times;
  together(
      [&] {
        for (int i = 0; i < queued; ++i) spin<<<1, 1>>>(bench.size(200000, 100));
        posted = true;
        wait();
      },
      [&] {
        do {
          const auto start = Clock::now();
          launchMany(1);
          times.push_back(microsecondsSince(start));
        } while (!posted);
      });
  printFigure("launch + wait, " + std::to_string(queued) + " queued on the other GPU", "us", median(times));

  double busy = 0;
  together(
      [&] {
        spin<<<1, 1>>>(bench.size(20000000000ll, 100ll));  // about ten seconds
        wait();
      },
      [&] { busy = launches(rate)(); });
  printFigure("a launch of " + std::to_string(rate) + ", the other GPU computing", "us", busy);
}

// The cost of a small matrix product for the program. cuBLAS is opened at run time, so that the other groups need no library; without it
// nothing is measured.
void measureLibraries(const Bench& bench) {
  void* library = dlopen("libcublas.so.13", RTLD_NOW);
  using Create = int (*)(void**);
  using Gemm = int (*)(void*, int, int, int, int, int, const float*, const float*, int, const float*, int, const float*, float*, int);
  auto create = library == nullptr ? nullptr : reinterpret_cast<Create>(dlsym(library, "cublasCreate_v2"));
  auto gemm = library == nullptr ? nullptr : reinterpret_cast<Gemm>(dlsym(library, "cublasSgemm_v2"));
  void* handle = nullptr;
  if (create == nullptr || gemm == nullptr || create(&handle) != 0) return;
  constexpr int side = 64;
  const float alpha = 1, beta = 0;
  DeviceArray<float> a(side * side), b(side * side), c(side * side);
  auto product = [&] {
    if (gemm(handle, 0, 0, side, side, side, &alpha, a, side, b, side, &beta, c, side) != 0) std::exit(1);
  };
  product();
  measure("GEMM of 64 x 64", bench.size(50, 2), 200, product, wait);
  measure("GEMM of 64 x 64 + wait", bench.size(50, 2), 20, [&] { product(), wait(); }, none);
}

constexpr Group groups[] = {{"start", measureStart},
                            {"launches", measureLaunches},
                            {"allocation", measureAllocation},
                            {"queries", measureQueries},
                            {"two-gpus", measureTwoGpus},
                            {"libraries", measureLibraries},
                            {"pageable", [](const Bench& bench) { measureCopies(bench, false); }},
                            {"pinned", [](const Bench& bench) { measureCopies(bench, true); }},
                            {"many-calls", measureManyCalls},
                            {"much-data", measureMuchData}};

int main(int argc, char** argv) { return runGroup(argc, argv, "calls", groups); }
