// The folder of images: what is found in it, and how it handles files and folders that were changed.
#include "stub/worker/image-store.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include <cstring>
#include <sstream>

#include "../files.h"
#include "../image-folder.h"

using namespace vgpu;
using namespace vgpu::stub;
using namespace vgpu::test;

namespace {

constexpr uint64_t room = 1ull << 30;
constexpr size_t versionAt = 8, digestAt = 32, imageBytesAt = 72, nameBytesAt = 80, imageAt = 4096;  // in a file

std::string refusalOf(const std::string& path) {
  std::string problem;
  CHECK_FALSE(ImageStore::open(path, room, problem).has_value());
  return problem;
}

// An image of any size that the store knows nothing about.
std::vector<std::byte> someImage(size_t bytes, unsigned seed = 1) { return randomBytes(bytes, seed); }

const ImageFacts someFacts{.prints = true, .hasManaged = true, .variables = {"counter", "weights"}};

bool has(ImageStore& store, std::span<const std::byte> image) { return store.find(digestOf(image)) != nullptr; }

bool isSame(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

void setUse(const std::string& path, time_t seconds) {
  timespec times[2] = {{seconds, 0}, {seconds, 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

// Writes `value` at `offset` into a file with few names and corrects the checksum, as an attacker who knows the format could.
void forge(const std::string& path, size_t offset, uint64_t value) {
  std::string text = readFile(path);
  std::memcpy(text.data() + offset, &value, sizeof value);
  XXH128_hash_t sum = XXH3_128bits(text.data() + 32, imageAt - 32);
  std::memcpy(text.data() + 16, &sum.low64, 8);
  std::memcpy(text.data() + 24, &sum.high64, 8);
  writeFile(path, text);
}

// Captures log messages while it lives.
class Log {
 public:
  Log() {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(out)));
  }
  ~Log() { spdlog::set_default_logger(before); }
  size_t count(const std::string& text) const {
    size_t found = 0;
    std::string all = out.str();
    for (size_t at = all.find(text); at != all.npos; at = all.find(text, at + 1)) ++found;
    return found;
  }

 private:
  std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  std::ostringstream out;
};

}  // namespace

TEST_CASE("an image is found again with its facts, also by a later worker, and a zero byte follows it") {
  ImageFolder folder("deep/er");
  for (size_t bytes : {1, 100, 4095, 4096, 4097, 5'000'000}) {
    CAPTURE(bytes);
    auto image = someImage(bytes);
    {
      auto store = folder.open();
      CHECK_FALSE(has(store, image));
      store.add(digestOf(image), image, someFacts);
    }
    auto store = folder.open();
    auto found = store.find(digestOf(image));
    REQUIRE(found != nullptr);
    CHECK(isSame(found->bytes(), image));
    CHECK(found->facts() == someFacts);
    CHECK(found->bytes().data()[bytes] == std::byte{0});
  }
  struct stat status;
  REQUIRE(stat(folder.path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  REQUIRE(stat(folder.fileOf(someImage(100)).c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("a digest is the SHA-256 of the bytes, and other bytes have another one") {
  CHECK(hexOf(digestOf(bytesOf("abc"))) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  ImageFolder folder;
  auto store = folder.open();
  auto image = someImage(5000), other = image;
  other[4999] ^= std::byte{1};
  store.add(digestOf(image), image, someFacts);
  CHECK_FALSE(has(store, other));
  store.add(digestOf(other), other, {});
  CHECK(isSame(store.find(digestOf(other))->bytes(), other));
  CHECK(store.find(digestOf(other))->facts() == ImageFacts{});
  CHECK(isSame(store.find(digestOf(image))->bytes(), image));
}

TEST_CASE("unpacked code is found again with its architecture, and a file whose code was changed is removed") {
  ImageFolder folder;
  auto image = someImage(5000), code = someImage(300'000, 2);
  folder.open().add(digestOf(image), image, someFacts, {90, code});
  auto found = folder.open().find(digestOf(image));
  REQUIRE(found != nullptr);
  CHECK(isSame(found->bytes(), image));
  CHECK(found->bytes().data()[5000] == std::byte{0});
  CHECK(found->facts() == someFacts);
  CHECK(found->code().architecture == 90);
  CHECK(isSame(found->code().bytes, code));
  CHECK(reinterpret_cast<uintptr_t>(found->code().bytes.data()) % 4096 == 0);

  std::string file = folder.fileOf(image), good = readFile(file);
  Log log;
  for (size_t at : {good.size() - 1, good.size() - 300'000, good.size() - 150'000}) {
    std::string bent = good;
    bent[at] = static_cast<char>(bent[at] ^ 1);
    writeFile(file, bent);
    auto store = folder.open();
    CHECK_FALSE(has(store, image));
    CHECK_FALSE(std::filesystem::exists(file));
  }
  CHECK(log.count("its code's checksum does not match") == 3);
}

TEST_CASE("a file that is truncated, extended or changed anywhere is removed and absent, and can be stored again") {
  ImageFolder folder;
  auto store = folder.open();
  auto image = someImage(5000);
  store.add(digestOf(image), image, someFacts);
  std::string file = folder.fileOf(image), good = readFile(file);
  Log log;
  size_t damaged = 0;
  auto damage = [&](const std::string& text) {
    writeFile(file, text);
    CHECK_FALSE(has(store, image));
    CHECK_FALSE(std::filesystem::exists(file));
    ++damaged;
  };
  for (size_t size : {size_t{0}, size_t{1}, size_t{87}, size_t{88}, size_t{4096}, good.size() / 2, good.size() - 1})
    damage(good.substr(0, size));
  damage(good + '\0');
  std::vector<size_t> places{good.size() - 1, good.size() - 2, 4096};
  for (size_t at = 0; at < 160; ++at) places.push_back(at);
  for (size_t at : places) {
    if (at >= 12 && at < 16) continue;  // reserved, not checked
    CAPTURE(at);
    std::string bent = good;
    bent[at] = static_cast<char>(bent[at] ^ 0x10);
    damage(bent);
  }
  CHECK(log.count("is removed: ") == damaged);
  store.add(digestOf(image), image, someFacts);
  CHECK(isSame(store.find(digestOf(image))->bytes(), image));
}

TEST_CASE("a forged file is absent: another version, absurd sizes, an image under another's name, an edited image") {
  ImageFolder folder;
  auto store = folder.open();
  auto image = someImage(5000), other = someImage(5000, 2);
  Log log;
  auto forged = [&](size_t offset, uint64_t value, const char* why) {
    CAPTURE(value);
    store.add(digestOf(image), image, someFacts);
    forge(folder.fileOf(image), offset, value);
    CHECK_FALSE(has(store, image));
    CHECK(log.count(why) > 0);
    CHECK_FALSE(std::filesystem::exists(folder.fileOf(image)));
  };
  forged(versionAt, 2, "its format version is 2, not 6");
  for (uint64_t size :
       {uint64_t{0}, uint64_t{4999}, uint64_t{5001}, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 4096}) {
    forged(imageBytesAt, size, "bytes, which its header does not say");
    if (size != 0) forged(nameBytesAt, size, "bytes, which its header does not say");  // without names it has the same length
  }
  forged(digestAt, 7, "its image is not the one that its name says");
  forged(imageAt + 1000, 7, "its image's checksum does not match");
  store.add(digestOf(other), other, {});
  std::filesystem::rename(folder.fileOf(other), folder.fileOf(image));
  CHECK_FALSE(has(store, image));
}

TEST_CASE("an image in use is not read and checked again, and an unused one is") {
  ImageFolder folder;
  auto store = folder.open();
  auto image = someImage(5000);
  store.add(digestOf(image), image, someFacts);
  auto first = store.find(digestOf(image));
  std::filesystem::remove(folder.fileOf(image));
  CHECK(store.find(digestOf(image)) == first);
  first.reset();
  CHECK_FALSE(has(store, image));
}

TEST_CASE("files that others could have written are not trusted: links, pipes, folders, wrong mode or owner") {
  ImageFolder folder;
  auto store = folder.open();
  auto image = someImage(5000);
  std::string file = folder.fileOf(image), elsewhere = folder.scratch.path + "/elsewhere";
  auto refused = [&](auto spoil) {
    store.add(digestOf(image), image, someFacts);
    REQUIRE(has(store, image));
    spoil();
    CHECK_FALSE(has(store, image));
    CHECK_FALSE(std::filesystem::exists(std::filesystem::symlink_status(file)));
  };
  Log log;
  refused([&] { chmod(file.c_str(), 0620); });
  refused([&] { chmod(file.c_str(), 0602); });
  refused([&] {
    std::filesystem::rename(file, elsewhere);
    std::filesystem::create_symlink(elsewhere, file);
  });
  refused([&] {
    std::filesystem::remove(file);
    REQUIRE(mkfifo(file.c_str(), 0600) == 0);
  });
  if (geteuid() == 0) refused([&] { REQUIRE(chown(file.c_str(), 12345, 0) == 0); });
  CHECK(log.count("is removed: ") == (geteuid() == 0 ? 5 : 4));

  std::filesystem::create_directory(file);
  CHECK_FALSE(has(store, image));
  store.add(digestOf(image), image, someFacts);
  CHECK_FALSE(has(store, image));
  CHECK(log.count("module images cannot be cached in") <= 1);
}

TEST_CASE("a folder of another user, one that others can write, and a missing one are refused") {
  ImageFolder folder;
  std::filesystem::create_directory(folder.path);
  for (mode_t mode : {0770, 0702, 0777}) {
    chmod(folder.path.c_str(), mode);
    CHECK(refusalOf(folder.path).find("can be written by others") != std::string::npos);
  }
  chmod(folder.path.c_str(), 0755);
  folder.open();
  if (geteuid() == 0) {
    REQUIRE(chown(folder.path.c_str(), 12345, 0) == 0);
    CHECK(refusalOf(folder.path).find("belongs to user 12345") != std::string::npos);
  }
  writeFile(folder.scratch.path + "/file", "x");
  CHECK(refusalOf(folder.scratch.path + "/file").find("cannot be opened") != std::string::npos);
  CHECK(refusalOf(folder.scratch.path + "/file/s").find("cannot be made") != std::string::npos);
}

TEST_CASE("processes that store the same images at once leave every one of them whole") {
  ImageFolder folder;
  std::vector<std::vector<std::byte>> images;
  for (unsigned i = 0; i < 20; ++i) images.push_back(someImage(50'000 + i, i));
  std::vector<pid_t> writers;
  for (int i = 0; i < 4; ++i) {
    writers.push_back(fork());
    if (writers.back() != 0) continue;
    auto store = folder.open();
    bool whole = true;
    for (auto& image : images) {
      store.add(digestOf(image), image, someFacts);
      auto found = store.find(digestOf(image));
      whole = whole && found && isSame(found->bytes(), image);
    }
    _exit(whole ? 0 : 1);
  }
  for (pid_t writer : writers) {
    int status = -1;
    REQUIRE(waitpid(writer, &status, 0) == writer);
    CHECK(status == 0);
  }
  CHECK(namesIn(folder.path).size() == images.size());
}

TEST_CASE("a full store drops the least recently used images, and mapped ones stay whole") {
  ImageFolder folder;
  constexpr uint64_t imageBytes = 100'000, fileBytes = imageBytes + 4096 + 1;
  std::vector<std::vector<std::byte>> images;
  for (unsigned i = 0; i < 11; ++i) images.push_back(someImage(imageBytes, i));
  {
    auto placeholder = folder.open();
    for (unsigned i = 0; i < 10; ++i) {
      placeholder.add(digestOf(images[i]), images[i], {});
      setUse(folder.fileOf(images[i]), 1000 + i);
    }
  }
  auto store = folder.open(10 * fileBytes);
  auto mapped = store.find(digestOf(images[1]));  // used now, so it is the most recently used
  REQUIRE(mapped != nullptr);
  auto other = folder.open(10 * fileBytes);
  auto oldest = other.find(digestOf(images[0]));
  REQUIRE(oldest != nullptr);
  setUse(folder.fileOf(images[0]), 1);  // its time is set back, but it is mapped
  store.add(digestOf(images[10]), images[10], {});
  CHECK_FALSE(has(store, images[0]));
  CHECK(isSame(oldest->bytes(), images[0]));
  CHECK(has(store, images[10]));
  CHECK(has(store, images[1]));
  CHECK(has(store, images[9]));

  // It stays below its limit, even if other processes add images.
  for (unsigned i = 0; i < 40; ++i) {
    auto image = someImage(imageBytes, 100 + i);
    (i % 2 == 0 ? store : other).add(digestOf(image), image, {});
  }
  CHECK(namesIn(folder.path).size() <= 20);  // each store object counts only what it adds itself
  auto last = someImage(imageBytes, 1000);
  folder.open(10 * fileBytes).add(digestOf(last), last, {});
  CHECK(namesIn(folder.path).size() <= 10);
  CHECK(has(store, last));
}

TEST_CASE("an image larger than the store is not stored, and drops no others") {
  ImageFolder folder;
  auto store = folder.open(20'000);
  auto small = someImage(5000), large = someImage(20'000, 2);
  store.add(digestOf(small), small, {});
  store.add(digestOf(large), large, {});
  CHECK(has(store, small));
  CHECK_FALSE(has(store, large));
}

TEST_CASE("files of killed writers are removed after a while, and foreign files never") {
  ImageFolder folder;
  std::filesystem::create_directory(folder.path);
  chmod(folder.path.c_str(), 0700);
  for (auto name : {"new-0123456789abcdef", "new-fresh", "README", "abc"}) writeFile(folder.path + "/" + name, "x");
  setUse(folder.path + "/new-0123456789abcdef", time(nullptr) - 4000);
  setUse(folder.path + "/README", 1);
  auto store = folder.open(6000);
  for (unsigned i = 0; i < 3; ++i) {
    auto image = someImage(1000, i);
    store.add(digestOf(image), image, {});
  }
  CHECK(namesIn(folder.path).size() == 4);
  for (auto name : {"new-fresh", "README", "abc"}) CHECK(std::filesystem::exists(folder.path + "/" + name));
}

TEST_CASE("a full or read-only disk is logged once, leaves no files, and is no error for the caller") {
  SmallDisk disk("size=100k");
  if (!disk.mounted) {
    MESSAGE("skipped: a file system cannot be mounted here");
    return;
  }
  std::string path = disk.scratch.path + "/s";
  auto store = openImages(path);
  auto small = someImage(5000), large = someImage(300'000, 2);
  Log log;
  store.add(digestOf(small), small, {});
  store.add(digestOf(large), large, {});
  store.add(digestOf(large), large, {});
  CHECK(log.count("module images cannot be cached in") == 1);
  CHECK(log.count("No space left on device") == 1);
  CHECK_FALSE(has(store, large));
  CHECK(has(store, small));
  CHECK(namesIn(path).size() == 1);
  disk.makeReadOnly();
  auto another = openImages(path);
  another.add(digestOf(large), large, {});
  CHECK(log.count("Read-only file system") == 1);
  CHECK(has(another, small));
}
