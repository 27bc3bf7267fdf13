#include "tools/common/session-lookup.h"

#include <doctest/doctest.h>
#include <kj/exception.h>

#include <string>
#include <vector>

namespace vgpu {
namespace {

const std::vector<SessionKey> sessions = {
    {"a1111111", "train", 10},    {"b2222222", "train", 20}, {"c3333333", "serve", 30},
    {"d4444444", "a1111111", 40}, {"e5555555", "30", 50},
};

std::string refusal(const std::string& text) {
  auto caught = kj::runCatchingExceptions([&] { lookUpSession(sessions, text); });
  KJ_IF_MAYBE (exception, caught) {
    return exception->getDescription().cStr();
  }
  return "";
}

}  // namespace

TEST_CASE("a session is found by id, by name and by pid") {
  CHECK(lookUpSession(sessions, "c3333333") == 2);
  CHECK(lookUpSession(sessions, "serve") == 2);
  CHECK(lookUpSession(sessions, "20") == 1);
}

TEST_CASE("an id means its session even where another one has that name") {
  CHECK(lookUpSession(sessions, "a1111111") == 0);
}

TEST_CASE("what means several sessions is refused with their ids") {
  CHECK(refusal("train").find("a1111111 (train, pid 10), b2222222 (train, pid 20)") != std::string::npos);
  CHECK(refusal("30").find("c3333333") != std::string::npos);
}

TEST_CASE("what means no session is refused with what to look at") {
  CHECK(refusal("other").find("vgpuctl ps") != std::string::npos);
  CHECK(refusal("").find("no session") != std::string::npos);
}

}  // namespace vgpu
