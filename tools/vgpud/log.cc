#include "tools/vgpud/log.h"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <tuple>

#include "tools/common/printable.h"

namespace vgpu::daemon {
namespace {

// The flag in spdlog's pattern for a line's text.
class Escaped final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    std::string text = printable({message.payload.data(), message.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<Escaped>(); }
};

}  // namespace

void startLog(const std::string& level) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("vgpud"));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<Escaped>('*').set_pattern("%Y-%m-%d %H:%M:%S.%e %n %l: %*");
  spdlog::set_formatter(std::move(formatter));
  spdlog::set_level(spdlog::level::from_str(level));
}

void LogLimit::expire(Clock::time_point now) {
  for (auto entry = entries.begin(); entry != entries.end();) {
    if (now - entry->second.start < interval) {
      ++entry;
      continue;
    }
    if (entry->second.leftOut > 0)
      write(fmt::format("{} more like: {}", entry->second.leftOut, entry->second.last));
    entry = entries.erase(entry);
  }
}

void LogLimit::add(const char* kind, int64_t peer, const std::string& line, Clock::time_point now) {
  Key key(kind, peer);
  auto known = entries.find(key);
  if (known == entries.end() || now - known->second.start >= interval) {
    expire(now);
    if (entries.size() >= mostKeys) key.second = anybody;
    bool isFirst;
    std::tie(known, isFirst) = entries.try_emplace(key, Entry{now});
    if (isFirst) return write(line);
  }
  ++known->second.leftOut;
  known->second.last = line;
}

// One LogLimit per process, like spdlog's logger.
void warnLimited(const char* kind, int64_t peer, const std::string& line) {
  static LogLimit limit([](const std::string& text) { spdlog::warn("{}", text); });
  limit.add(kind, peer, line);
}

}  // namespace vgpu::daemon
