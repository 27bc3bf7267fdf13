// Images that are copied while the program runs, and a program that cannot be quiesced meanwhile.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <vector>

#include "checkpoint/live-images.h"
#include "session-fixture.h"
#include "stub/worker/execution.h"

using namespace vgpu;
using namespace vgpu::test;
using namespace vgpu::checkpoint;

namespace {

constexpr uint64_t firstImage = 1, secondImage = 2;

// An image other than madeImage(), with its final zero.
std::vector<std::byte> otherImage() {
  std::vector<std::byte> image(madeImage().begin(), madeImage().end());
  image.insert(image.end() - 1, 5, std::byte{'\n'});
  return image;
}

// Copies the images of two modules with a visitor that throws from call number `fails` on.
void copyTwo(TestSession& session, stub::Worker& worker, int fails, const std::function<void(ChunkSink&, ImageDigests&)>& look) {
  auto other = otherImage();
  worker.proceed();
  bringImage(session, firstImage, madeImage());
  session.require(moduleLoad(0, made::module, firstImage));
  bringImage(session, secondImage, other);
  session.require(moduleLoad(0, made::module + 1, secondImage));
  SnapshotWriter directory(session.scratch.path + "/snapshot");
  NewChunks chunks(directory);
  int visits = 0;
  ImageDigests images = copyImages(*chunks.sink, [&](const std::function<void(stub::SessionState&)>& work) {
    if (visits++ >= fails) return false;
    worker.quiesce();
    worker.runQuiesced(work);
    worker.proceed();
    return true;
  });
  look(*chunks.sink, images);
}

}  // namespace

TEST_CASE("an image that could not be copied while the program runs is not identified by the bytes of the image before it") {
  TestSession session;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    copyTwo(session, worker, 2, [](ChunkSink& sink, ImageDigests& images) {
      KJ_REQUIRE(images.size() == 1, images.size());
      KJ_REQUIRE(images.at({firstImage, 0}) == sink.digester(madeImage()));
    });
  }) == "");
}

TEST_CASE("images that are copied while the program runs are identified by their own bytes") {
  TestSession session;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    copyTwo(session, worker, 3, [](ChunkSink& sink, ImageDigests& images) {
      KJ_REQUIRE(images.size() == 2, images.size());
      KJ_REQUIRE(images.at({firstImage, 0}) == sink.digester(madeImage()));
      KJ_REQUIRE(images.at({secondImage, 0}) == sink.digester(otherImage()));
    });
  }) == "");
}

TEST_CASE("an image that was copied before is not copied again, and one that comes later is") {
  TestSession session;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    bringImage(session, firstImage, madeImage());
    session.require(moduleLoad(0, made::module, firstImage));
    SnapshotWriter directory(session.scratch.path + "/snapshot");
    NewChunks chunks(directory);
    bool mayVisit = true;
    int visits = 0;
    auto visit = [&](const std::function<void(stub::SessionState&)>& work) {
      if (!mayVisit && visits++ > 0) return false;
      worker.quiesce();
      worker.runQuiesced(work);
      worker.proceed();
      return true;
    };
    ImageDigests images;
    auto take = intoSink(*chunks.sink, images);
    KJ_REQUIRE(copyNewImages(visit, images, take).copiedBytes == madeImage().size());
    KJ_REQUIRE(copyNewImages(visit, images, take).copiedBytes == 0);
    auto other = otherImage();
    bringImage(session, secondImage, other);
    session.require(moduleLoad(0, made::module + 1, secondImage));
    mayVisit = false;
    KJ_REQUIRE(copyNewImages(visit, images, take).leftBytes == other.size());
    mayVisit = true;
    auto last = copyNewImages(visit, images, take);
    KJ_REQUIRE(last.copiedBytes == other.size());
    KJ_REQUIRE(last.leftBytes == 0);
    KJ_REQUIRE(images.at({secondImage, 0}) == chunks.sink->digester(other));
  }) == "");
}
