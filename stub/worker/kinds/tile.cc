// Memory that the program maps to its arrays: tile-state.h.
#include <cstring>
#include <vector>

#include "cuda-described.h"
#include "cuda-handlers.h"
#include "stub/worker/kinds/kind.h"
#include "stub/worker/unpacked.h"
#include "vgpu/base/fail.h"

namespace vgpu::stub {

CUresult arrayMap(Execution& on, const api::FrameReader<api::Cuda::ArrayMapParams>& p, Reply&) {
  auto list = p.getList();
  Unpacked real(on, api::described::CUarrayMapInfo_v1, list);
  if (CUresult bad = real.check(real.count())) return bad;
  std::vector<CUarrayMapInfo> wanted(real.count());
  std::memcpy(wanted.data(), list.begin(), list.size());
  return on.session.tiles.execute(on, on.stream(p.getStream()), wanted, {real.list<CUarrayMapInfo>(), real.count()});
}

namespace {

void restore(SessionState& session, const Rows& rows) {
  for (auto& row : rows) session.tiles.restore(session.select(TileState::deviceOf(row)), row);
}

}  // namespace

const KindModule tileKind{.name = "tiles",
                          .drop = [](Execution& on) { on.session.tiles.drop(on.device()); },
                          .destroy = [](Execution& on) { return on.session.tiles.endDevice(on); },
                          .columns = TileState::columns,
                          .isValid = TileState::isValid,
                          .save = [](SessionState& session) { return session.tiles.rows(); },
                          .restore = restore};

}  // namespace vgpu::stub
