// Frames and replies: builders and readers, and the Cap'n Proto schema that describes the same bytes.
#include <fmt/format.h>

#include <cctype>

#include "table.h"

namespace vgpu::generator {

namespace {

// A field's accessors in builder and reader, as formats: {n} is its name, {p} its place, {t} its C++ type or that of its elements. Places
// are template arguments, so a setter of a field that a part of the frame lacks fails to compile.
struct Accessors {
  const char *set, *get;
};
Accessors accessorsOf(Type type) {
  switch (type) {
    case Type::boolean:
      return {"    void set{n}(bool value) {{ this->template setBit<{p}>(value); }}\n",
              "    bool get{n}() const {{ return getBit({p}); }}\n"};
    case Type::bytes:
    case Type::described:
      return {
          "    kj::ArrayPtr<kj::byte> init{n}(size_t size) {{ return this->template placeData<{p}>(size); }}\n"
          "    void set{n}(kj::ArrayPtr<const kj::byte> data) {{ this->template copyData<{p}>(data.begin(), data.size()); }}\n",
          "    kj::ArrayPtr<const kj::byte> get{n}() const {{ return readData({p}); }}\n"};
    case Type::text:
      return {"    void set{n}(kj::StringPtr text) {{ this->template copyData<{p}>(text.cStr(), text.size() + 1); }}\n",
              "    kj::StringPtr get{n}() const {{ return readText({p}); }}\n"};
    case Type::structure:
      return {
          "    template <typename Structure>\n"
          "    void set{n}(const Structure& value) {{ this->template copyData<{p}>(&value, sizeof value); }}\n",
          "    template <typename Structure>\n    Structure get{n}() const {{ return readStructure<Structure>({p}); }}\n"};
    case Type::list:
      return {
          "    Elements<{t}> init{n}(size_t size) {{\n"
          "      return Elements<{t}>(this->template placeData<{p}>(size * sizeof({t})));\n    }}\n"
          "    void set{n}(kj::ArrayPtr<const {t}> list) {{\n"
          "      this->template copyData<{p}>(list.begin(), list.size() * sizeof({t}));\n    }}\n",
          "    ElementsReader<{t}> get{n}() const {{ return ElementsReader<{t}>(readData({p})); }}\n"};
    default:
      return {"    void set{n}({t} value) {{ this->template set<{p}>(value); }}\n",
              "    {t} get{n}() const {{ return get<{t}>({p}); }}\n"};
  }
}

std::string accessor(const char* Accessors::*which, const Field& f) {
  return fmt::format(fmt::runtime(accessorsOf(f.type).*which), fmt::arg("n", f.accessor()), fmt::arg("p", f.place),
                     fmt::arg("t", infoOf(f.type == Type::list ? f.element : f.type).cpp));
}

// A builder for a part (its first words and Data lists), and one for the whole.
std::string structure(const std::string& name, const Structure& s) {
  std::string out = fmt::format(
      "struct {} {{\n  template <unsigned dataWords, unsigned pointers>\n"
      "  class Part : public FlatBuilder<dataWords, pointers> {{\n   public:\n"
      "    using FlatBuilder<dataWords, pointers>::FlatBuilder;\n",
      name);
  for (auto& f : s.fields) out += accessor(&Accessors::set, f);
  out += fmt::format("  }};\n  using Builder = Part<{}, {}>;\n", s.dataWords, s.pointers);
  out += "  class Reader : public FlatReader {\n   public:\n    using FlatReader::FlatReader;\n";
  for (auto& f : s.fields) out += accessor(&Accessors::get, f);
  return out + "  };\n};\n\n";
}

// A field's name may be spelled as in the header (Flags), which a schema does not allow.
std::string schema(const std::string& name, const Structure& s) {
  std::string out = fmt::format("struct {} {{\n", name);
  unsigned ordinal = 0;
  for (auto* field : byPlace(s)) {
    std::string fieldName = field->name;
    fieldName[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(fieldName[0])));
    out += fmt::format("  {} @{} :{};\n", fieldName, ordinal++, infoOf(field->type).schema);
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
