// Calls: call (results), target, (arguments), prototype;
//
// Arguments and results lie in the parameter area of the caller's frame. A .param variable has its place there; a register or a constant
// gets one for the call, of the parameter's type.
#include "stub/emulator/ptx/decode/decoder.h"
#include "stub/emulator/ptx/decode/linker.h"
#include "stub/emulator/ptx/run/builtins.h"
#include "stub/emulator/ptx/run/handlers.h"

namespace vgpu::emulator {
namespace {

class Call {
 public:
  Call(Decoder& decoder, const Statement& statement) : decoder(decoder), statement(statement) {
    for (const Operand& operand : statement.operands) {
      if (operand.kind == Operand::Kind::list)
        (target ? arguments : results) = &operand;
      else if (operand.kind != Operand::Kind::name || prototype)
        decoder.invalid(statement.line, "a call with an operand of the wrong kind");
      else
        (target ? prototype : target) = &operand;
    }
    if (!target) decoder.invalid(statement.line, "a call without a target");
  }

  void run() {
    const Symbol* const through = decoder.findRegister(*target);
    const FunctionDecl* const callee = through ? findPrototype() : decoder.linker().findFunction(target->name);
    if (!callee && !through) decoder.invalid(statement.line, "'" + std::string(target->name) + "' is not a function");
    const uint32_t mark = decoder.build().fixedMark();
    auto site = std::make_unique<CallSite>();
    site->arguments = slotsOf(arguments, callee ? &callee->parameters : nullptr, false);
    site->results = slotsOf(results, callee ? &callee->results : nullptr, true);
    if (callee) check(*callee, *site);
    if (through)
      emitIndirect(*through, *site);
    else
      emit(*callee, *site);
    decoder.function().calls.push_back(std::move(site));
    for (const auto& [symbol, to] : loads) decodeParameterLoad(decoder, statement, symbol, symbol.type, *to, 0);
    decoder.build().releaseFixed(mark);
  }

 private:
  // The last operand of an indirect call: the label of a .callprototype or .calltargets, or a table of functions.
  const FunctionDecl* findPrototype() {
    if (!prototype) return nullptr;
    const Symbol* symbol = decoder.find(prototype->name);
    if (symbol && symbol->prototype) return symbol->prototype;
    const VariableDecl* table = symbol ? nullptr : decoder.linker().findVariable(prototype->name);
    for (const VariableDecl& each : decoder.decl().statics)
      if (symbol && each.name == prototype->name) table = &each;
    if (!table || table->relocations.empty())
      decoder.invalid(statement.line, "'" + std::string(prototype->name) + "' is neither a prototype nor a list of functions");
    return decoder.linker().findFunction(table->relocations[0].symbol);
  }

  const Symbol* findParameter(const Operand& operand) {
    const Symbol* symbol = operand.kind == Operand::Kind::name ? decoder.find(operand.name) : nullptr;
    return symbol && symbol->kind == Symbol::Kind::parameter ? symbol : nullptr;
  }

  // A place for an operand that is not a .param variable.
  Symbol placeFor(const std::vector<ParameterDecl>* formal, size_t index) {
    if (!formal) decoder.invalid(statement.line, "a call through an address needs a prototype");
    if (index >= formal->size()) decoder.invalid(statement.line, "a call with more operands than its target has parameters");
    const ParameterDecl& parameter = (*formal)[index];
    if (parameter.isArray) decoder.invalid(statement.line, "a register or a constant for a parameter that is an array");
    if (parameter.type == Type::pred) decoder.unsupported(statement.line, "a predicate as a parameter");
    Symbol symbol{Symbol::Kind::parameter, parameter.type};
    symbol.bytes = parameter.bytes;
    symbol.offset = decoder.build().reserveFixed(rowsOf(parameter.bytes));
    return symbol;
  }

  // Arguments that are not .param variables are stored before the call, and such results are loaded after it.
  std::vector<Slot> slotsOf(const Operand* list, const std::vector<ParameterDecl>* formal, bool areResults) {
    std::vector<Slot> slots;
    for (size_t i = 0; list && i < list->parts.size(); ++i) {
      const Operand& operand = list->parts[i];
      if (const Symbol* symbol = findParameter(operand)) {
        slots.push_back(slotOf(symbol->offset, symbol->bytes));
        continue;
      }
      if (!areResults && operand.kind != Operand::Kind::number && !decoder.findRegister(operand))
        decoder.invalid(operand.line, "an argument that is neither a register, a constant nor a .param variable");
      const Symbol place = placeFor(formal, i);
      if (areResults)
        loads.push_back({place, &operand});
      else
        decodeParameterStore(decoder, statement, place, place.type, operand, 0);
      slots.push_back(slotOf(place.offset, place.bytes));
    }
    return slots;
  }

  void check(const FunctionDecl& callee, const CallSite& site) {
    const auto agree = [](const std::vector<ParameterDecl>& declared, const std::vector<Slot>& given) {
      if (declared.size() != given.size()) return false;
      for (size_t i = 0; i < given.size(); ++i)
        if (slotOf(0, declared[i].bytes).bytes != given[i].bytes) return false;
      return true;
    };
    if (!agree(callee.parameters, site.arguments) || !agree(callee.results, site.results))
      decoder.invalid(statement.line, "the call of '" + callee.name + "' does not fit its declaration");
  }

  void emitIndirect(const Symbol& through, CallSite& site) {
    decoder.linker().noteIndirectCall();
    if (through.value.bytes != 8) decoder.invalid(statement.line, "a call through a register that is not 64 bits wide");
    IrInst& inst = decoder.build().add(callIndirect, {}, {through.value});
    inst.aux = &site;
    inst.joinAfter = true;
  }

  void emit(const FunctionDecl& callee, CallSite& site) {
    site.calleeName = callee.name;
    if (callee.hasBody) {
      if (callee.isKernel) decoder.unsupported(statement.line, "a call of a kernel");
      site.callee = decoder.linker().function(target->name, statement.line);
      decoder.build().add(callDirect, {}, {}).aux = &site;
      return;
    }
    const Handler builtin = findBuiltin(callee.name, site.arguments.size(), site.results.size());
    if (!builtin) decoder.unsupported(statement.line, "function '" + callee.name + "', which is declared but not defined,");
    decoder.build().add(builtin, {}, {}).aux = &site;
  }

  Decoder& decoder;
  const Statement& statement;
  const Operand *results = nullptr, *target = nullptr, *arguments = nullptr, *prototype = nullptr;
  std::vector<std::pair<Symbol, const Operand*>> loads;  // results that must be loaded into registers
};

}  // namespace

void decodeCall(Decoder& decoder, const Statement& statement) { Call(decoder, statement).run(); }

}  // namespace vgpu::emulator
