#include "stub/emulator/ptx/run/format.h"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace vgpu::emulator {
namespace {

constexpr int widestField = 4096;  // limits the memory that hostile widths can use

// One conversion, rebuilt for the host's snprintf with numbers for width and precision.
class Conversion {
 public:
  Conversion(std::string_view text, FormatArguments& arguments) : text(text), arguments(arguments) {}

  // Parses the text after the '%'; returns the number of characters used, 0 if this is no conversion.
  size_t run(std::string& output, int& used) {
    while (at < text.size() && std::string_view("-+ #0").find(text[at]) != std::string_view::npos)
      specification += text[at++];
    number(used);
    if (at < text.size() && text[at] == '.') {
      specification += text[at++];
      number(used);
    }
    bool wide = false;
    while (at < text.size() && std::string_view("hlLjztq").find(text[at]) != std::string_view::npos) {
      const char c = text[at++];
      if (c == 'h')
        narrow += 'h';
      else
        wide = true;
    }
    if (at >= text.size()) return 0;
    const char kind = text[at++];
    if (kind == '%') {
      output += '%';
      return at;
    }
    if (!emit(kind, wide, output)) return 0;
    ++used;
    return at;
  }

 private:
  void number(int& used) {
    int value = 0;
    if (at < text.size() && text[at] == '*') {
      ++at;
      ++used;
      value = static_cast<int>(arguments.next(4));
      if (value < 0 && specification.back() != '.') specification += '-', value = -value;
    } else {
      if (at >= text.size() || text[at] < '0' || text[at] > '9') return;
      while (at < text.size() && text[at] >= '0' && text[at] <= '9')
        value = std::min(value * 10 + (text[at++] - '0'), widestField);
    }
    specification += std::to_string(std::clamp(value, 0, widestField));
  }

  template <class T>
  void put(const std::string& suffix, T value, std::string& output) {
    const std::string spec = "%" + specification + suffix;
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
          put(std::string("ll") + kind, static_cast<long long>(arguments.next(8)), output);
        else
          put(narrow + kind, static_cast<int>(arguments.next(4)), output);
        return true;
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        if (wide)
          put(std::string("ll") + kind, static_cast<unsigned long long>(arguments.next(8)), output);
        else
          put(narrow + kind, static_cast<unsigned>(arguments.next(4)), output);
        return true;
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        put(std::string(1, kind), std::bit_cast<double>(arguments.next(8)), output);
        return true;
      case 'c':
        put("c", static_cast<int>(arguments.next(4)), output);
        return true;
      case 's':
        put("s", arguments.text(arguments.next(8)).c_str(), output);
        return true;
      case 'p': {
        char text[32];
        std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(arguments.next(8)));
        put("s", static_cast<const char*>(text), output);
        return true;
      }
      default:
        return false;
    }
  }

  std::string_view text;
  FormatArguments& arguments;
  size_t at = 0;
  std::string specification, narrow;
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
