// Frames and replies: builders and readers, and the Cap'n Proto schema that describes the same bytes.
#include <fmt/format.h>

#include <cctype>

#include "table.h"

namespace vgpu::generator {

namespace {

const char* schemaTypeOf(Type type) {
  constexpr const char* names[] = {"Bool", "UInt8", "UInt16", "UInt32", "UInt64", "Int32", "Int64", "Float32",
                                   "Float64", "UInt64"};
  return type <= Type::place ? names[static_cast<size_t>(type)] : "Data";
}

// Places are template arguments, so a setter of a field that a part of the frame does not have fails to compile.
std::string setter(const Field& f) {
  const auto& n = f.accessor;
  switch (f.type) {
    case Type::boolean:
      return fmt::format("    void set{}(bool value) {{ this->template setBit<{}>(value); }}\n", n, f.place);
    case Type::bytes:
    case Type::described:
      return fmt::format(
          "    kj::ArrayPtr<kj::byte> init{0}(size_t size) {{ return this->template placeData<{1}>(size); }}\n"
          "    void set{0}(kj::ArrayPtr<const kj::byte> data) {{ this->template copyData<{1}>(data.begin(), data.size()); }}\n",
          n, f.place);
    case Type::text:
      return fmt::format("    void set{}(kj::StringPtr text) {{ this->template copyData<{}>(text.cStr(), text.size() + 1); }}\n", n,
                         f.place);
    case Type::structure:
      return fmt::format(
          "    template <typename Structure>\n"
          "    void set{}(const Structure& value) {{ this->template copyData<{}>(&value, sizeof value); }}\n",
          n, f.place);
    case Type::list:
      return fmt::format(
          "    Elements<{0}> init{1}(size_t size) {{\n"
          "      return Elements<{0}>(this->template placeData<{2}>(size * sizeof({0})));\n    }}\n"
          "    void set{1}(kj::ArrayPtr<const {0}> list) {{\n"
          "      this->template copyData<{2}>(list.begin(), list.size() * sizeof({0}));\n    }}\n",
          cppTypeOf(f.element), n, f.place);
    default:
      return fmt::format("    void set{}({} value) {{ this->template set<{}>(value); }}\n", n, cppTypeOf(f.type), f.place);
  }
}

std::string getter(const Field& f) {
  const auto& n = f.accessor;
  switch (f.type) {
    case Type::boolean:
      return fmt::format("    bool get{}() const {{ return getBit({}); }}\n", n, f.place);
    case Type::bytes:
    case Type::described:
      return fmt::format("    kj::ArrayPtr<const kj::byte> get{}() const {{ return readData({}); }}\n", n, f.place);
    case Type::text:
      return fmt::format("    kj::StringPtr get{}() const {{ return readText({}); }}\n", n, f.place);
    case Type::structure:
      return fmt::format(
          "    template <typename Structure>\n    Structure get{}() const {{ return readStructure<Structure>({}); }}\n", n,
          f.place);
    case Type::list:
      return fmt::format("    ElementsReader<{0}> get{1}() const {{ return ElementsReader<{0}>(readData({2})); }}\n",
                         cppTypeOf(f.element), n, f.place);
    default:
      return fmt::format("    {0} get{1}() const {{ return get<{0}>({2}); }}\n", cppTypeOf(f.type), n, f.place);
  }
}

// A builder of its first words and Data lists, and of the whole.
std::string structure(const std::string& name, const Structure& s) {
  std::string out = fmt::format(
      "struct {} {{\n  template <unsigned dataWords, unsigned pointers>\n"
      "  class Part : public FlatBuilder<dataWords, pointers> {{\n   public:\n"
      "    using FlatBuilder<dataWords, pointers>::FlatBuilder;\n",
      name);
  for (auto& f : s.fields) out += setter(f);
  out += fmt::format("  }};\n  using Builder = Part<{}, {}>;\n", s.dataWords, s.pointers);
  out += "  class Reader : public FlatReader {\n   public:\n    using FlatReader::FlatReader;\n";
  for (auto& f : s.fields) out += getter(f);
  return out + "  };\n};\n\n";
}

// A field may be spelled as in the header, Flags; a schema's may not.
std::string schema(const std::string& name, const Structure& s) {
  std::string out = fmt::format("struct {} {{\n", name);
  unsigned ordinal = 0;
  for (auto& f : byPlace(s)) {
    std::string fieldName = f.name;
    fieldName[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(fieldName[0])));
    out += fmt::format("  {} @{} :{};\n", fieldName, ordinal++, schemaTypeOf(f.type));
  }
  return out + "}\n\n";
}

template <typename Emit>
std::string each(const Table& table, Emit emit) {
  std::string out;
  for (auto* row : table.frames) {
    if (row == nullptr || !row->sameAs.empty()) continue;
    out += emit(row->typeName() + "Params", row->frame);
    if (!row->results.fields.empty()) out += emit(row->typeName() + "Results", row->results);
  }
  return out;
}

}  // namespace

std::string emitFrames(const Table& table) {
  std::string out = banner;
  out += "#pragma once\n\n#include \"vgpu/api/flat-frame.h\"\n\nnamespace vgpu::api::Cuda {\n\n";
  return out + each(table, structure) + "}  // namespace vgpu::api::Cuda\n";
}

std::string emitSchema(const Table& table) {
  std::string out =
      "@0xb8d26f0c7a3e4195;\n# Generated from vgpu/api/cuda.table. Do not edit.\n# The frames and replies; what Data a field is, "
      "says the table.\n\nusing Cxx = import \"/capnp/c++.capnp\";\n$Cxx.namespace(\"vgpu::schema\");\n\n";
  return out + each(table, schema);
}

}  // namespace vgpu::generator
