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

TEST_CASE("a prefix gives the meaning of a word") {
  CHECK(lookUpSession(sessions, "id:a1111111") == 0);
  CHECK(lookUpSession(sessions, "name:a1111111") == 3);
  CHECK(lookUpSession(sessions, "pid:30") == 2);
  CHECK(lookUpSession(sessions, "name:30") == 4);
  CHECK(refusal("pid:serve").find("no session \"pid:serve\"") != std::string::npos);
  CHECK(refusal("id:10").find("no session \"id:10\"") != std::string::npos);
}

TEST_CASE("a plain word that is one session's id and another one's name is refused") {
  CHECK(refusal("a1111111").find("id:a1111111 (train, pid 10), id:d4444444 (a1111111, pid 40)") != std::string::npos);
  CHECK(refusal("30").find("id:c3333333") != std::string::npos);
}

TEST_CASE("a word that is both id and name of one session refers to it") {
  const std::vector<SessionKey> same = {{"a1111111", "a1111111", 10}};
  CHECK(lookUpSession(same, "a1111111") == 0);
}

TEST_CASE("a name that looks like a prefix can be given with one") {
  const std::vector<SessionKey> odd = {{"a1111111", "pid:20", 10}, {"b2222222", "b", 20}};
  CHECK(lookUpSession(odd, "pid:20") == 1);
  CHECK(lookUpSession(odd, "name:pid:20") == 0);
}

TEST_CASE("a word that fits several sessions is refused with their ids") {
  CHECK(refusal("train").find("id:a1111111 (train, pid 10), id:b2222222 (train, pid 20)") != std::string::npos);
  CHECK(refusal("name:train").find("id:b2222222") != std::string::npos);
}

TEST_CASE("a word that fits no session is refused with advice") {
  CHECK(refusal("other").find("vgpuctl ps") != std::string::npos);
  CHECK(refusal("").find("no session") != std::string::npos);
}

}  // namespace vgpu
