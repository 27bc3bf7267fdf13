#include "migrate/pre-copy-target.h"

#include <fmt/format.h>

#include <array>
#include <map>

#include "checkpoint/staging-ring.h"
#include "migrate/objects-ahead.h"
#include "stub/gpu/primary-context.h"
#include "stub/worker/execution.h"
#include "vgpu/base/fail.h"
#include "vgpu/snapshot/chunk.h"
#include "vgpu/wire/arena.h"

namespace vgpu::migrate {

namespace {

// Slots per stream: while a chunk is copied to the device, the next is read from the socket.
constexpr size_t slotsOfStream = 4;

}  // namespace

// The receiver of one stream, on its own thread.
class PreCopyTarget::Receiver {
 public:
  Receiver(PreCopyTarget& target, ChunkStream& stream) : target(target), driver(target.driver), stream(stream), first(driver, 0) {
    stub::require(driver, first.take(), "keeping a context");
    stub::require(driver, first.select(), "changing device");
    ring.emplace(&driver, slotsOfStream);
  }
  ~Receiver() {
    for (auto& [device, to] : devices) {
      to.context->select();
      driver.cuStreamSynchronize(to.stream);
      for (CUevent event : to.events)
        if (event != nullptr) driver.cuEventDestroy_v2(event);
      driver.cuStreamDestroy_v2(to.stream);
    }
    first.select();
    ring.reset();
  }

  void run() {
    while (true) {
      ChunkMessage message = stream.receive();
      switch (message.kind) {
        case MessageKind::lease:
          target.lease(message);
          break;
        case MessageKind::chunk:
        case MessageKind::zeros:
          take(message);
          break;
        case MessageKind::image:
          target.beginImage(message);
          break;
        case MessageKind::piece:
          target.takePiece(message, receive(message, snapshot::chunkBytes));
          break;
        case MessageKind::objects:
          target.make(receive(message, mostObjectsAheadBytes));
          break;
        case MessageKind::flush:
          flush(message);
          break;
        default:
          fail(fmt::format("the source of the migration sent a message of kind {}", static_cast<uint32_t>(message.kind)));
      }
    }
  }

 private:
  struct Device {
    std::unique_ptr<stub::PrimaryContext> context;
    CUstream stream = nullptr;
    std::array<CUevent, slotsOfStream> events{};  // recorded after the last copy from each slot
  };

  Device& select(unsigned device) {
    auto& to = devices[device];
    if (to.context == nullptr) {
      to.context = std::make_unique<stub::PrimaryContext>(driver, device);
      stub::require(driver, to.context->take(), "keeping a context");
      stub::require(driver, to.context->select(), "changing device");
      stub::require(driver, driver.cuStreamCreate(&to.stream, CU_STREAM_NON_BLOCKING), "making a stream");
    }
    stub::require(driver, to.context->select(), "changing device");
    return to;
  }

  void requireSize(const ChunkMessage& message, uint64_t most) {
    if (message.bytes == 0 || message.bytes > most)
      fail(fmt::format("the source of the migration sent {} bytes at once", message.bytes));
  }

  // The bytes behind the message. Valid until the next call.
  std::span<const std::byte> receive(const ChunkMessage& message, uint64_t most) {
    requireSize(message, most);
    received.resize(message.bytes);
    stream.receive(received);
    return received;
  }

  void take(const ChunkMessage& message) {
    requireSize(message, snapshot::chunkBytes);
    target.requireLeased(message);
    if (message.kind == MessageKind::zeros) {
      auto& to = select(message.device);
      CUresult result = driver.cuMemsetD8Async(message.address, 0, message.bytes, to.stream);
      stub::require(driver, result, "filling the device's memory");
    } else {
      size_t number = nextSlot++ % slotsOfStream;
      for (auto& [device, to] : devices)
        if (to.events[number] != nullptr)
          stub::require(driver, driver.cuEventSynchronize(to.events[number]), "copying to the device's memory");
      auto& slot = ring->all()[number];
      stream.receive({slot.memory, message.bytes});
      auto& to = select(message.device);
      CUevent& event = to.events[number];
      if (event == nullptr) stub::require(driver, driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "creating an event");
      CUresult result = driver.cuMemcpyHtoDAsync_v2(message.address, slot.memory, message.bytes, to.stream);
      stub::require(driver, result, "copying to the device's memory");
      stub::require(driver, driver.cuEventRecord(event, to.stream), "recording an event");
    }
    taken.push_back(message);
  }

  void flush(const ChunkMessage& message) {
    for (auto& [device, to] : devices) {
      select(device);
      stub::require(driver, driver.cuStreamSynchronize(to.stream), "copying to the device's memory");
    }
    target.note(taken);
    taken.clear();
    stream.send(message);
  }

  PreCopyTarget& target;
  const stub::Driver& driver;
  ChunkStream& stream;
  stub::PrimaryContext first;  // for pinning and unpinning memory
  std::optional<checkpoint::StagingRing> ring;
  size_t nextSlot = 0;
  std::map<unsigned, Device> devices;
  std::vector<ChunkMessage> taken;  // chunks taken since the last flush
  std::vector<std::byte> received;
};

PreCopyTarget::PreCopyTarget(const stub::Driver& driver, stub::Worker& worker, std::vector<kj::AutoCloseFd> sockets)
    : driver(driver), worker(worker), threads([this] {
        for (auto& stream : streams) stream->endReceiving();
      }) {
  for (auto& socket : sockets) streams.push_back(std::make_unique<ChunkStream>(kj::mv(socket)));
  for (auto& stream : streams)
    threads.start([this, &stream] {
      KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { Receiver(*this, *stream).run(); })) {
        std::string why = noteFailure(exception->getDescription().cStr());
        if (why.empty()) return;
        kj::runCatchingExceptions([&] { stream->refuse(why); });
        kj::throwFatalException(kj::mv(*exception));
      }
    });
}

PreCopyTarget::~PreCopyTarget() = default;

// Returns the first failure of all streams; empty if they ended because nothing more is to come.
std::string PreCopyTarget::noteFailure(const std::string& why) {
  std::lock_guard lock(mutex);
  if (!isFinished && failure.empty()) failure = why;
  return failure;
}

// Each stream is read until it ends: after the last flush, finish() ends it.
checkpoint::SentAhead& PreCopyTarget::finish() {
  {
    std::lock_guard lock(mutex);
    isFinished = true;
  }
  for (auto& stream : streams) stream->endReceiving();
  threads.join();
  return sent;
}

// Called by whichever stream names the lease first.
void PreCopyTarget::lease(const ChunkMessage& message) {
  std::lock_guard lock(mutex);
  if (leases.has(message.address, message.bytes)) return;
  worker.runQuiesced([&](stub::SessionState& on) {
    if (message.device >= on.deviceCount())
      fail(fmt::format("the program uses GPU {}, but this node has {}", message.device, on.deviceCount()));
    CUresult result = on.use(message.device);
    if (result == CUDA_SUCCESS) {
      on.select(message.device);
      result = on.of(message.device).gpu.leases.leaseAhead(message.address, message.bytes);
    }
    if (result != CUDA_SUCCESS)
      fail(fmt::format("cannot allocate {} bytes on GPU {} for the arriving session: {}", message.bytes, message.device,
                       stub::nameOf(on.driver, result)));
    on.select(0);
  });
  leases.add(message.address, message.bytes);
}

void PreCopyTarget::requireLeased(const ChunkMessage& message) {
  std::lock_guard lock(mutex);
  if (!leases.cover(message.address, message.bytes))
    fail(fmt::format("the source of the migration sent {} bytes for {:#x}, an address without a lease", message.bytes,
                     message.address));
}

void PreCopyTarget::note(const std::vector<ChunkMessage>& taken) {
  std::lock_guard lock(mutex);
  for (auto& chunk : taken) sent.memory.add(chunk.device, chunk.address, chunk.bytes, chunk.digest);
}

void PreCopyTarget::beginImage(const ChunkMessage& message) {
  std::lock_guard lock(mutex);
  const unsigned device = handleDevice(message.address);
  worker.runQuiesced([&](stub::SessionState& on) {
    CUresult result = device < on.deviceCount()
                          ? on.of(device).blobs.reserve(message.address, stub::Blob::Origin::snapshot, message.bytes)
                          : CUDA_ERROR_INVALID_DEVICE;
    if (result != CUDA_SUCCESS)
      fail(fmt::format("no room for an image of {} bytes for GPU {} of the arriving session: {}", message.bytes, device,
                       stub::nameOf(on.driver, result)));
  });
  newImages.insert(message.address);
}

void PreCopyTarget::takePiece(const ChunkMessage& message, std::span<const std::byte> bytes) {
  std::lock_guard lock(mutex);
  worker.runQuiesced([&](stub::SessionState& on) {
    auto* image = newImages.contains(message.address) ? on.of(handleDevice(message.address)).blobs.find(message.address) : nullptr;
    if (image == nullptr || image->bytes().size() - image->arrivedBytes() < bytes.size())
      fail(fmt::format("the source of the migration sent {} bytes of the image {:#x}, more than its size", bytes.size(),
                       message.address));
    sent.images[{message.address, image->arrivedBytes()}] = message.digest;
    image->append(bytes);
  });
}

void PreCopyTarget::make(std::span<const std::byte> message) {
  auto objects = decodeObjects(message);
  std::lock_guard lock(mutex);
  requireSound(objects.key);
  worker.runQuiesced([&](stub::SessionState& on) {
    checkpoint::requireValid(objects.tables.state, on.deviceCount(), [](const std::string& check) {
      fail("the objects that the source of the migration sent: " + check);
    });
    sent.made.follow(on, objects.tables.state, objects.records);
    on.select(0);
  });
}

// Verifies images' digests now, while nobody waits for it.
void PreCopyTarget::requireSound(const DigestKey& key) {
  Digester digester(key);
  worker.runQuiesced([&](stub::SessionState& on) {
    for (uint64_t number : newImages) {
      auto bytes = on.of(handleDevice(number)).blobs.find(number)->bytes();
      for (checkpoint::ChunkPlan plan({bytes.size()}); auto piece = plan.next();) {
        auto found = sent.images.find({number, piece->offset});
        if (found == sent.images.end() || found->second != digester(bytes.subspan(piece->offset, piece->bytes)))
          fail(fmt::format("the image {:#x}, which was sent ahead, was altered or damaged on its way", number));
      }
    }
  });
  newImages.clear();
}

}  // namespace vgpu::migrate
