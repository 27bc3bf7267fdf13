// The list's rules must cover every row of the schema that builds: a new row without one fails here, by name.
#include <capnp/serialize.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "frames.h"
#include "vgpu/objects/record-format.h"
#include "vgpu/objects/record-table.h"

using namespace vgpu;
using namespace vgpu::test;

namespace {

// Effects of a method whose parameters all have their defaults.
std::vector<api::EffectOn> effectsOfEmpty(api::Method method) {
  capnp::word null{};
  return effectsOf(method, kj::arrayPtr(&null, 1));
}

size_t count(const std::vector<api::EffectOn>& effects, api::Effect effect) {
  return static_cast<size_t>(
      std::count_if(effects.begin(), effects.end(), [&](auto& e) { return e.effect == effect; }));
}

}  // namespace

TEST_CASE("every frame that builds makes at most one object, and one that only changes an object is a setting or a part of its making") {
  for (size_t i = 0; i < api::methodCount; i++) {
    auto method = static_cast<api::Method>(i);
    auto& info = api::infoOf(method);
    if (info.replay != api::Replay::BUILD) continue;
    CAPTURE(info.name);
    auto effects = effectsOfEmpty(method);
    size_t makes = count(effects, api::Effect::creates), ends = count(effects, api::Effect::destroys);
    CHECK(makes <= 1);
    // A graph is built by many frames, each of which adds a node. Sharing an object with another process is also a part of its
    // construction.
    bool isShare = method == api::Method::memoryShare || method == api::Method::eventShare || method == api::Method::physicalShare;
    bool isPart = isShare || std::any_of(effects.begin(), effects.end(), [](auto& e) {
      return e.effect == api::Effect::changes && e.kind == api::Kind::GRAPH_EXEC;
    });
    CHECK(isSetting(method) == (makes == 0 && ends == 0 && !isPart));
    // A frame that replaces an earlier one must have been executed when it is recorded: a suspend may come in between.
    if (isSetting(method)) CHECK(info.route == api::Route::CALL);
  }
}

TEST_CASE("a setting replaces only one with the same target") {
  CHECK(supersedes(funcSetAttribute(2, 11, 8, 5), funcSetAttribute(1, 11, 8, 4)));
  CHECK_FALSE(supersedes(funcSetAttribute(2, 11, 9, 5), funcSetAttribute(1, 11, 8, 4)));
  CHECK(supersedes(ctxSetLimit(2, 0, 3, 5), ctxSetLimit(1, 0, 3, 4)));
  CHECK_FALSE(supersedes(ctxSetLimit(2, 0, 4, 5), ctxSetLimit(1, 0, 3, 4)));
  CHECK_FALSE(supersedes(ctxSetLimit(2, 1, 3, 5), ctxSetLimit(1, 0, 3, 4)));
  CHECK_FALSE(supersedes(moduleFunction(2, 11, 1), moduleFunction(1, 11, 1)));
}

TEST_CASE("a texture reference keeps the format of the array that set it, whichever array it is later bound to without that flag") {
  constexpr unsigned setsFormat = 1;  // CU_TRSA_OVERRIDE_FORMAT
  auto bind = [](uint64_t position, uint64_t array, unsigned flags) {
    return makeFrame<api::Cuda::TexRefSetArrayParams>(position, api::Method::texRefSetArray, 0, [&](auto& p) {
      p.setHTexRef(21);
      p.setHArray(array);
      p.setFlags(flags);
    });
  };
  CHECK_FALSE(supersedes(bind(2, 32, 0), bind(1, 31, setsFormat)));
  CHECK(supersedes(bind(2, 32, 0), bind(1, 31, 0)));
  CHECK(supersedes(bind(2, 32, setsFormat), bind(1, 31, setsFormat)));
}

TEST_CASE("every kind has its own name") {
  std::set<std::string> names;
  for (unsigned kind = 0; kind < api::kindCount; kind++)
    CHECK(names.insert(kindName(static_cast<api::Kind>(kind))).second);
  CHECK(kindName(static_cast<api::Kind>(999)) == std::string("unknown"));
}
