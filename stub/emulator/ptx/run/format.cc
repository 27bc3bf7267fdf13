#include "stub/emulator/ptx/run/format.h"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace vgpu::emulator {
namespace {

constexpr int kWidest = 4096;  // of a field: hostile widths make no gigabytes

// One conversion, rebuilt for the host's snprintf with its width and precision as numbers.
class Conversion {
 public:
  Conversion(std::string_view text, FormatArguments& arguments) : text_(text), arguments_(arguments) {}

  // Parses behind the '%'; returns the characters used, 0 where this is no conversion.
  size_t run(std::string& output, int& used) {
    while (at_ < text_.size() && std::string_view("-+ #0").find(text_[at_]) != std::string_view::npos)
      spec_ += text_[at_++];
    number(used);
    if (at_ < text_.size() && text_[at_] == '.') {
      spec_ += text_[at_++];
      number(used);
    }
    bool wide = false;
    while (at_ < text_.size() && std::string_view("hlLjztq").find(text_[at_]) != std::string_view::npos) {
      const char c = text_[at_++];
      if (c == 'h')
        narrow_ += 'h';
      else
        wide = true;
    }
    if (at_ >= text_.size()) return 0;
    const char kind = text_[at_++];
    if (kind == '%') {
      output += '%';
      return at_;
    }
    if (!emit(kind, wide, output)) return 0;
    ++used;
    return at_;
  }

 private:
  void number(int& used) {
    int value = 0;
    if (at_ < text_.size() && text_[at_] == '*') {
      ++at_;
      ++used;
      value = static_cast<int>(arguments_.next(4));
      if (value < 0 && spec_.back() != '.') spec_ += '-', value = -value;
    } else {
      if (at_ >= text_.size() || text_[at_] < '0' || text_[at_] > '9') return;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9')
        value = std::min(value * 10 + (text_[at_++] - '0'), kWidest);
    }
    spec_ += std::to_string(std::clamp(value, 0, kWidest));
  }

  template <class T>
  void put(const std::string& suffix, T value, std::string& output) {
    const std::string spec = "%" + spec_ + suffix;
    char small[128];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    const int length = std::snprintf(small, sizeof small, spec.c_str(), value);
    if (length >= static_cast<int>(sizeof small)) {
      std::string large(static_cast<size_t>(length) + 1, '\0');
      std::snprintf(large.data(), large.size(), spec.c_str(), value);
      output.append(large, 0, static_cast<size_t>(length));
    } else if (length > 0) {
      output.append(small, static_cast<size_t>(length));
    }
#pragma GCC diagnostic pop
  }

  bool emit(char kind, bool wide, std::string& output) {
    switch (kind) {
      case 'd':
      case 'i':
        if (wide)
          put(std::string("ll") + kind, static_cast<long long>(arguments_.next(8)), output);
        else
          put(narrow_ + kind, static_cast<int>(arguments_.next(4)), output);
        return true;
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        if (wide)
          put(std::string("ll") + kind, static_cast<unsigned long long>(arguments_.next(8)), output);
        else
          put(narrow_ + kind, static_cast<unsigned>(arguments_.next(4)), output);
        return true;
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        put(std::string(1, kind), std::bit_cast<double>(arguments_.next(8)), output);
        return true;
      case 'c':
        put("c", static_cast<int>(arguments_.next(4)), output);
        return true;
      case 's':
        put("s", arguments_.text(arguments_.next(8)).c_str(), output);
        return true;
      case 'p': {
        char text[32];
        std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(arguments_.next(8)));
        put("s", static_cast<const char*>(text), output);
        return true;
      }
      default:
        return false;
    }
  }

  std::string_view text_;
  FormatArguments& arguments_;
  size_t at_ = 0;
  std::string spec_, narrow_;
};

}  // namespace

int format(std::string_view format, FormatArguments& arguments, std::string& output) {
  int used = 0;
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      output += format[at++];
      continue;
    }
    const size_t taken = Conversion(format.substr(at + 1), arguments).run(output, used);
    if (taken == 0) output += '%';
    at += taken + 1;
  }
  return used;
}

}  // namespace vgpu::emulator
