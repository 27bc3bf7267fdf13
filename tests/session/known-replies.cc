#include "intercept/session/known-replies.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "cuda-frames.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

KnownReplies::Question blocksOf(uint64_t size, uint64_t shared) {
  return {api::Method::occupancyTable, {size, shared, 0}};
}

using Asked = KnownReplies::Asked;

// A query about some text.
KnownReplies::Question about(const std::string& text) {
  return Asked(api::Method::tensorMapEncodeTiled).add(text.size()).add(kj::arrayPtr(text.data(), text.size()).asBytes());
}

// The reply to a query: a count.
struct Counted {
  std::vector<capnp::word> words;
  explicit Counted(uint32_t count) {
    api::FrameBuilder<api::Cuda::DescribeResults> builder(words);
    builder.setCount(count);
  }
  kj::ArrayPtr<const capnp::word> get() const { return kj::arrayPtr(words.data(), words.size()); }
};
uint32_t countOf(const Reply& reply) { return reply.results<api::Cuda::DescribeResults>().getCount(); }

}  // namespace

TEST_CASE("a reply is found only for the same query") {
  std::atomic<uint64_t> device{0};
  KnownReplies replies(device);
  for (uint64_t size = 1024; size > 0; size -= 32) replies.keep(replies.generation(), blocksOf(size, 16), size / 32);
  for (uint64_t size = 32; size <= 1024; size += 32) CHECK(replies.find(blocksOf(size, 16)) == size / 32);
  CHECK(!replies.find(blocksOf(64, 0)));
  CHECK(!replies.find({api::Method::funcGetAttribute, {64, 16, 0}}));
  replies.keep(replies.generation(), blocksOf(64, 16), 7);
  CHECK(replies.find(blocksOf(64, 16)) == 7u);
}

TEST_CASE("a change forgets all replies") {
  std::atomic<uint64_t> device{0};
  KnownReplies replies(device);
  replies.keep(replies.generation(), blocksOf(64, 0), 1);
  replies.forget();
  CHECK(!replies.find(blocksOf(64, 0)));
}

TEST_CASE("a reply to a query that was made before a change is not kept after it") {
  std::atomic<uint64_t> device{0};
  KnownReplies replies(device);
  uint64_t asked = replies.generation();
  replies.forget();
  replies.keep(asked, blocksOf(64, 0), 1);
  CHECK(!replies.find(blocksOf(64, 0)));
}

TEST_CASE("a change of the device forgets the replies for all its objects") {
  std::atomic<uint64_t> device{0};
  KnownReplies one(device), other(device);
  one.keep(one.generation(), blocksOf(64, 0), 1);
  other.keep(other.generation(), blocksOf(64, 0), 2);
  uint64_t asked = one.generation();
  ++device;
  CHECK(!one.find(blocksOf(64, 0)));
  CHECK(!other.find(blocksOf(64, 0)));
  one.keep(asked, blocksOf(64, 0), 1);
  CHECK(!one.find(blocksOf(64, 0)));
  one.keep(one.generation(), blocksOf(64, 0), 3);
  CHECK(one.find(blocksOf(64, 0)) == 3u);
  CHECK(!other.find(blocksOf(64, 0)));
}

TEST_CASE("an unbounded number of queries takes bounded memory") {
  std::atomic<uint64_t> device{0};
  KnownReplies replies(device);
  for (uint64_t shared = 0; shared < 100'000; ++shared) replies.keep(replies.generation(), blocksOf(64, shared), shared);
  CHECK(replies.find(blocksOf(64, 99'999)) == 99'999u);
  CHECK(!replies.find(blocksOf(64, 0)));
}

TEST_CASE("a reply of several words is found only for the same query") {
  std::atomic<uint64_t> device{0};
  KnownReplies replies(device);
  const std::string texts[] = {"", "a", "aa", "aaaaaaaa", "aaaaaaab", "baaaaaaa", "aaaaaaaaa"};
  for (uint32_t i = 0; auto& text : texts) {
    Reply reply(replies, about(text));
    REQUIRE(!reply.isKnown());
    reply.keep(Counted(++i).get());
    CHECK(countOf(reply) == i);
  }
  for (uint32_t i = 0; auto& text : texts) {
    Reply reply(replies, about(text));
    REQUIRE(reply.isKnown());
    CHECK(countOf(reply) == ++i);
  }
  CHECK(Reply(replies, about("a")).isKnown());
  CHECK(!Reply(replies, about("a"), true).isKnown());
  replies.forget();
  CHECK(!Reply(replies, about("a")).isKnown());
}

TEST_CASE("a reply that is too long to be kept is still returned to its caller") {
  std::atomic<uint64_t> device{0};
  KnownReplies replies(device);
  Counted counted(7);
  counted.words.resize(KnownReplies::mostWords + 1);
  Reply reply(replies, about("long"));
  reply.keep(counted.get());
  CHECK(countOf(reply) == 7);
  CHECK(!Reply(replies, about("long")).isKnown());
}
