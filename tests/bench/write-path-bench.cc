// How to write chunks to disk: through the page cache, with O_DIRECT, and with O_DIRECT by io_uring; from one thread and from several, each
// with its own file, as a save writes its packs. Every file is synced. Figures are reported, never asserted; docs/performance/suspend.md
// has the decision.
//
// VGPU_BENCH_FOLDERS: two folders separated by ':' to write to; by default the temporary folder and /dev/shm.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <liburing.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t chunkBytes = size_t{2} << 20;
constexpr size_t chunksInAll = 128;
constexpr size_t chunksInFlight = 8;           // per thread with io_uring; more than a save has in its pinned ring
constexpr size_t writeBehindBytes = 16 << 20;  // as PackWriter does (vgpu/snapshot/snapshot-writer.cc)

// Incompressible bytes, as many chunks as are in flight; from mmap, so that they are page-aligned for O_DIRECT.
class Source {
 public:
  Source() {
    void* mapped = mmap(nullptr, chunksInFlight * chunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) KJ_FAIL_SYSCALL("mmap", errno);
    start = static_cast<std::byte*>(mapped);
    std::mt19937_64 random(1);
    std::generate_n(start, chunksInFlight * chunkBytes, [&] { return std::byte(random()); });
  }
  ~Source() { munmap(start, chunksInFlight * chunkBytes); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  std::span<const std::byte> chunk(size_t number) const { return {start + number % chunksInFlight * chunkBytes, chunkBytes}; }

 private:
  std::byte* start;
};

off_t placeOf(size_t chunk) { return static_cast<off_t>(chunk * chunkBytes); }

void writeWhole(int file, std::span<const std::byte> bytes, off_t offset) {
  while (!bytes.empty()) {
    ssize_t count;
    KJ_SYSCALL(count = pwrite(file, bytes.data(), bytes.size(), offset));
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += count;
  }
}

void writeBuffered(int file, const Source& source, size_t chunks) {
  size_t begun = 0;
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    writeWhole(file, source.chunk(chunk), placeOf(chunk));
    size_t written = (chunk + 1) * chunkBytes;
    if (written - begun < writeBehindBytes) continue;
    sync_file_range(file, static_cast<off_t>(begun), static_cast<off_t>(written - begun), SYNC_FILE_RANGE_WRITE);
    begun = written;
  }
}

void writeDirect(int file, const Source& source, size_t chunks) {
  for (size_t chunk = 0; chunk < chunks; ++chunk) writeWhole(file, source.chunk(chunk), placeOf(chunk));
}

void writeByRing(int file, const Source& source, size_t chunks) {
  io_uring ring;
  if (int error = io_uring_queue_init(chunksInFlight, &ring, 0)) KJ_FAIL_SYSCALL("io_uring_queue_init", -error);
  KJ_DEFER(io_uring_queue_exit(&ring));
  size_t submitted = 0;
  for (size_t done = 0; done < chunks; ++done) {
    for (; submitted < chunks && submitted - done < chunksInFlight; ++submitted) {
      auto bytes = source.chunk(submitted);
      io_uring_prep_write(io_uring_get_sqe(&ring), file, bytes.data(), static_cast<unsigned>(bytes.size()),
                          static_cast<uint64_t>(placeOf(submitted)));
    }
    if (int count = io_uring_submit(&ring); count < 0) KJ_FAIL_SYSCALL("io_uring_submit", -count);
    io_uring_cqe* completed;
    if (int error = io_uring_wait_cqe(&ring, &completed)) KJ_FAIL_SYSCALL("io_uring_wait_cqe", -error);
    KJ_REQUIRE(completed->res == static_cast<int>(chunkBytes), "a write was cut short", completed->res);
    io_uring_cqe_seen(&ring, completed);
  }
}

struct Way {
  const char* name;
  int flags;
  void (*write)(int file, const Source& source, size_t chunks);
};
constexpr Way ways[] = {{"buffered", 0, writeBuffered},
                        {"direct", O_DIRECT, writeDirect},
                        {"io_uring-buffered", 0, writeByRing},
                        {"io_uring-direct", O_DIRECT, writeByRing}};

void run(benchmark::State& state, const std::string& folder, const Way& way) {
  const auto threads = static_cast<size_t>(state.range(0));
  const Source source;
  std::string path = folder + "/vgpu-write-path-bench-" + std::to_string(getpid()) + "-";
  auto pathOf = [&](size_t thread) { return path + std::to_string(thread); };
  KJ_DEFER(for (size_t thread = 0; thread < threads; ++thread) unlink(pathOf(thread).c_str()));
  for (auto _ : state) {
    std::vector<std::jthread> all;
    for (size_t thread = 0; thread < threads; ++thread)
      all.emplace_back([&, thread] {
        int fd = open(pathOf(thread).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | way.flags, 0600);
        if (fd < 0) KJ_FAIL_SYSCALL("open", errno, pathOf(thread).c_str());
        kj::AutoCloseFd file(fd);
        way.write(file, source, chunksInAll / threads);
        KJ_SYSCALL(fsync(file));
      });
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * chunksInAll * chunkBytes));
}

std::vector<std::string> folders() {
  const char* wish = std::getenv("VGPU_BENCH_FOLDERS");
  std::string named = wish != nullptr ? wish : std::filesystem::temp_directory_path().string() + ":/dev/shm";
  size_t end = named.find(':');
  if (end == named.npos) return {named};
  return {named.substr(0, end), named.substr(end + 1)};
}

}  // namespace

int main(int count, char** arguments) {
  for (auto& folder : folders())
    for (auto& way : ways)
      benchmark::RegisterBenchmark((folder + "/" + way.name).c_str(),
                                   [folder, &way](benchmark::State& state) { run(state, folder, way); })
          ->Arg(1)
          ->Arg(4)
          ->Arg(16)
          ->UseRealTime()
          ->MeasureProcessCPUTime()
          ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&count, arguments);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
