// reseal MANIFEST FIELD JSON: changes a field of a snapshot's manifest (/identity/pid for a nested one) and seals it again, as another
// version of vgpu would have written it.
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "../manifest-text.h"

int main(int count, char** arguments) {
  if (count != 4) return 2;
  std::ifstream in(arguments[1]);
  std::string text(std::istreambuf_iterator<char>(in), {});
  auto json = vgpu::test::manifestOf(text);
  std::string field = arguments[2];
  json.at(nlohmann::json::json_pointer(field.starts_with('/') ? field : "/" + field)) = nlohmann::json::parse(arguments[3]);
  std::ofstream out(arguments[1]);
  out << vgpu::test::sealed(json);
  return out.good() ? 0 : 1;
}
