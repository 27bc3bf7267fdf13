// Lists of formal parameters, for kernels, functions and prototypes.
#include <algorithm>

#include "stub/emulator/ptx/text/declarations.h"
#include "stub/emulator/ptx/text/lexer.h"

namespace vgpu::emulator {
namespace {

constexpr uint32_t mostParameterBytes = 32764;  // PTX ISA, "Kernel Function Parameter"

uint32_t checkedParameterAlign(uint64_t align, int line) {
  if (align == 0 || align > 4096 || (align & (align - 1)))
    throw PtxError(PtxError::Kind::invalid, line, ".align " + std::to_string(align) + " is not a power of two up to 4096");
  return static_cast<uint32_t>(align);
}

ParameterDecl parseParameter(Lexer& lexer, Space space) {
  ParameterDecl parameter;
  parameter.space = space;
  Token token = lexer.next();
  for (; token.kind == Token::Kind::word && token.text[0] == '.'; token = lexer.next()) {
    if (token.is(".align")) {
      const uint64_t align = parseConstant(lexer);
      if (parameter.type == Type::none) parameter.align = checkedParameterAlign(align, token.line);
    } else if (const auto type = findType(token.text.substr(1))) {
      parameter.type = *type;
      parameter.bytes = sizeOf(*type);
    }  // .ptr, .global, .space and similar words describe what a pointer points to
  }
  if (token.kind != Token::Kind::word || parameter.type == Type::none)
    throw PtxError(PtxError::Kind::invalid, token.line, "expected a parameter's type and name");
  parameter.name = token.text;
  parameter.align = std::max(parameter.align, std::max(parameter.bytes, 1u));
  if (lexer.accept("[")) {
    const uint64_t count = lexer.peek().is("]") ? 0 : parseConstant(lexer);
    if (count > mostParameterBytes) throw PtxError(PtxError::Kind::invalid, token.line, "a parameter of too many bytes");
    lexer.expect("]");
    parameter.bytes *= static_cast<uint32_t>(count);
    parameter.isArray = true;
  }
  return parameter;
}

}  // namespace

std::vector<ParameterDecl> parseParameters(Lexer& lexer) {
  std::vector<ParameterDecl> list;
  uint32_t offset = 0;
  while (!lexer.accept(")")) {
    const Token token = lexer.next();
    const auto space = findSpace(token.text);
    if (space != Space::param && space != Space::reg)
      throw PtxError(PtxError::Kind::invalid, token.line, "expected a parameter, found '" + std::string(token.text) + "'");
    ParameterDecl parameter = parseParameter(lexer, *space);
    offset = (offset + parameter.align - 1) / parameter.align * parameter.align;
    parameter.offset = offset;
    if (parameter.bytes > mostParameterBytes - offset)
      throw PtxError(PtxError::Kind::invalid, token.line, "more than 32764 bytes of parameters");
    offset += parameter.bytes;
    list.push_back(parameter);
    if (!lexer.accept(",") && !lexer.peek().is(")")) lexer.expect(",");
  }
  return list;
}

}  // namespace vgpu::emulator
