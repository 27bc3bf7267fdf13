// The frames and replies as Cap'n Proto structures, for capnpc-c++. The schema itself is an interface, because a row is a
// method; compiled as one it would bring RPC classes for every row, local ones included (39,000 lines of header against 7,000).
#include <fmt/format.h>
#include <kj/debug.h>

#include <cctype>

#include "model.h"

namespace vgpu::generator {

namespace {

std::string typeName(capnp::Type type) {
  switch (type.which()) {
    case capnp::schema::Type::BOOL: return "Bool";
    case capnp::schema::Type::INT8: return "Int8";
    case capnp::schema::Type::INT16: return "Int16";
    case capnp::schema::Type::INT32: return "Int32";
    case capnp::schema::Type::INT64: return "Int64";
    case capnp::schema::Type::UINT8: return "UInt8";
    case capnp::schema::Type::UINT16: return "UInt16";
    case capnp::schema::Type::UINT32: return "UInt32";
    case capnp::schema::Type::UINT64: return "UInt64";
    case capnp::schema::Type::FLOAT32: return "Float32";
    case capnp::schema::Type::FLOAT64: return "Float64";
    case capnp::schema::Type::TEXT: return "Text";
    case capnp::schema::Type::DATA: return "Data";
    case capnp::schema::Type::LIST: return fmt::format("List({})", typeName(type.asList().getElementType()));
    case capnp::schema::Type::STRUCT: return type.asStruct().getUnqualifiedName().cStr();
    default: KJ_FAIL_REQUIRE("a frame has numbers, texts, data, lists and structures of those");
  }
}

// A parameter may be spelled as in cuda.h, Flags; a structure's field may not. The accessor is getFlags() either way.
std::string lowerCase(std::string name) {
  name[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(name[0])));
  return name;
}

// The same ordinals, so the same layout.
std::string structure(const std::string& indent, const std::string& name, capnp::StructSchema schema) {
  std::string out = fmt::format("{}struct {} {{\n", indent, name);
  for (auto field : schema.getFields()) {
    auto proto = field.getProto();
    KJ_REQUIRE(proto.isSlot() && !proto.getSlot().getHadExplicitDefault(), "a field without a default", name.c_str(),
               proto.getName());
    out += fmt::format("{}  {} @{} :{};\n", indent, lowerCase(proto.getName().cStr()), proto.getOrdinal().getExplicit(),
                       typeName(field.getType()));
  }
  return out + indent + "}\n";
}

}  // namespace

std::string emitStructs(const capnp::SchemaLoader& loader, uint64_t fileId, const std::vector<Method>& methods) {
  std::string out = "@0xb8d26f0c7a3e4195;\n# Generated from vgpu/api/cuda.capnp. Do not edit.\n"
                    "using Cxx = import \"/capnp/c++.capnp\";\n$Cxx.namespace(\"vgpu::api\");\n\n";
  for (auto nested : loader.get(fileId).getProto().getNestedNodes()) {
    auto schema = loader.get(nested.getId());
    if (schema.getProto().isStruct()) out += structure("", nested.getName().cStr(), schema.asStruct());
  }
  out += "\nstruct Cuda {\n";
  for (auto& method : methods) {
    if (!method.onWire()) continue;
    out += structure("  ", method.typeName + "Params", method.parameterSchema);
    if (method.hasResults) out += structure("  ", method.typeName + "Results", method.resultSchema);
  }
  return out + "}\n";
}

}  // namespace vgpu::generator
