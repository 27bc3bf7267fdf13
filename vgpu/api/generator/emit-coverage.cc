// Emits the coverage page: every entry, and what of it is hand-written.
#include <fmt/format.h>

#include "table.h"

namespace vgpu::generator {

namespace {

// Why a half is hand-written.
std::string reasonOf(const Row& row) {
  std::string why = row.reason;
  if (!row.clientByHand.empty()) why += (why.empty() ? "" : "; ") + fmt::format("client: {}", row.clientByHand);
  if (!row.workerByHand.empty()) why += (why.empty() ? "" : "; ") + fmt::format("worker: {}", row.workerByHand);
  return why;
}

}  // namespace

std::string emitCoverage(const Table& table) {
  size_t versions = 0, clients = 0, workers = 0, refused = 0, missing = 0;
  std::string rows, refusals, names, functions;
  for (auto& row : table.rows) {
    if (row.symbol.empty()) continue;
    if (!row.route) {
      ++missing;
      names += fmt::format(" `{}`", row.symbol);
    } else if (row.route == Route::forbid) {
      ++refused;
      refusals += fmt::format("| `{}` | {} |\n", row.symbol, row.reason);
    } else {
      ++versions;
      rows += fmt::format("| `{}` | {} | {} | {} | {} |\n", row.symbol,
                          row.since == 0 ? "" : fmt::format("{}.{}", row.since / 1000, row.since % 1000 / 10), nameOf(*row.route),
                          row.onWire() ? nameOf(row.replay) : "", reasonOf(row));
    }
  }
  auto entries = halvesByHand(table);
  for (auto& [entry, byHand] : entries) {
    clients += byHand.client;
    workers += byHand.worker;
    if (byHand.client) continue;
    for (auto& function : byHand.functions) functions += fmt::format("| `{}` | `{}` |\n", entry, function);
  }
  return fmt::format(
      "# Driver entries\n\nGenerated from `vgpu/api/cuda.table`.\n\n{} entries are supported, in {} versions. By hand: {} client "
      "halves, {} worker halves.\n\n| entry | since | route | replay | by hand, because |\n|---|---|---|---|---|\n{}\n"
      "Functions of the client that one entry's rows alone name:\n\n| entry | function |\n|---|---|\n{}\n"
      "{} entries are refused:\n\n| entry | because |\n|---|---|\n{}\n{} entries are missing:{}\n",
      entries.size(), versions, clients, workers, rows, functions, refused, refusals, missing, names);
}

}  // namespace vgpu::generator
