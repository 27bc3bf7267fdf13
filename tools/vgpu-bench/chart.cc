#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tools/vgpu-bench/write.h"

namespace vgpu::bench {
namespace {

// In pixels. Names are to the left of the bars, values to the right.
constexpr double nameWidth = 310, barsWidth = 420, valueWidth = 70, rowHeight = 20, top = 50, bottom = 34;
constexpr const char *ink = "#7d8590", *faster = "#2da44e", *slower = "#d4760a", *wantedInk = "#8957e5";

struct Bar {
  std::string name;
  double ratio;
  std::optional<double> wanted;  // as a ratio
};

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

// The axis extends from the decade below the smallest value to 2, or to the decade above the largest.
struct Axis {
  double low, high;

  explicit Axis(const std::vector<Bar>& bars) : low(0.5), high(2) {
    double least = 0.5, most = 2;
    for (const Bar& bar : bars) {
      least = std::min({least, bar.ratio, bar.wanted.value_or(1)});
      most = std::max({most, bar.ratio, bar.wanted.value_or(1)});
    }
    if (least < low) low = std::pow(10, std::floor(std::log10(least)));
    if (most > high) high = std::pow(10, std::ceil(std::log10(most)));
  }
  double place(double ratio) const { return nameWidth + barsWidth * std::log(ratio / low) / std::log(high / low); }
  std::vector<double> ticks() const {
    std::vector<double> ticks;
    for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high; decade *= 10) {
      for (double step : {1., 2., 5.}) {
        double tick = decade * step;
        if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push_back(tick);
      }
    }
    return ticks;
  }
};

std::string textAt(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(text));
}

std::string barAt(const Axis& axis, const Bar& bar, double y) {
  double from = axis.place(std::min(bar.ratio, 1.)), to = axis.place(std::max(bar.ratio, 1.));
  std::string text = textAt(nameWidth - 10, y + 14, "end", bar.name);
  text += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>\n", from, y + 3,
                      std::max(to - from, 1.), rowHeight - 6, bar.ratio <= 1 ? faster : slower);
  if (bar.wanted) {
    double x = axis.place(*bar.wanted);
    text += fmt::format("<path d=\"M{:.1f} {:.1f}v{}\" stroke=\"{}\" stroke-width=\"2.5\"/>\n", x, y + 1, rowHeight - 2,
                        wantedInk);
  }
  return text + textAt(nameWidth + barsWidth + 10, y + 14, "start", fmt::format("{:.3f}", bar.ratio));
}

std::string gridOf(const Axis& axis, double end) {
  std::string text;
  for (double tick : axis.ticks()) {
    bool isOne = std::abs(tick - 1) < 1e-9;
    text += fmt::format("<path d=\"M{:.1f} {}V{}\" stroke=\"{}\" stroke-width=\"1\" opacity=\"{}\"/>\n",
                        axis.place(tick), top, end, ink, isOne ? 1 : 0.25);
    text += textAt(axis.place(tick), end + 16, "middle", fmt::format("{:g}", tick));
  }
  return text;
}

}  // namespace

std::string writeChart(const Results& results, const std::string& group) {
  std::vector<Bar> bars;
  for (const Row& row : results.rows) {
    auto ratio = row.ratio();
    if (row.group != group || !ratio || *ratio <= 0 || row.unit == "KiB") continue;
    auto wanted = row.wanted();
    bars.push_back({row.name, *ratio, wanted ? std::optional(wanted->limit) : std::nullopt});
  }
  if (bars.empty()) return "";
  Axis axis(bars);
  double end = top + rowHeight * static_cast<double>(bars.size());
  double width = nameWidth + barsWidth + valueWidth, height = end + bottom;
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"{}\">\n",
      width, height, width, height, ink);
  text += textAt(10, 18, "start",
                 fmt::format("{}: time on a virtual GPU ÷ native, medians of {} runs", group, results.rounds));
  text += textAt(10, 36, "start", "left of 1 is faster than native; the vertical mark is the target");
  text += gridOf(axis, end);
  for (size_t i = 0; i < bars.size(); ++i) text += barAt(axis, bars[i], top + rowHeight * static_cast<double>(i));
  return text + "</svg>\n";
}

}  // namespace vgpu::bench
