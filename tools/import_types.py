"""The vendor's types, for tools/import-api: vgpu/api/cuda.types is what this writes, and nothing else.

A line a type, by name; more spaces continue a line.
  number NAME BYTES                          an integer
  pointer NAME                               a handle of the driver's or a function
  enum NAME (ENUMERATOR VALUE, …)            without the enumerators that only end the list or mean no value at all
  structure NAME BYTES (TYPE FIELD @OFFSET, …)   a structure or union; members of those without a name of their own by
                                             their path, as res.array.hArray
  same NAME OTHER                            another name of a type
"""
import re
import textwrap

from clang import cindex

BANNER = "# The vendor's types as tools/import-api reads them (tools/import_types.py says how). Do not edit.\n"
NO_VALUE = re.compile(r"_(INVALID|NUM_OPTIONS|NUM_INPUT_TYPES)$")
RECORD, ENUM, POINTER = cindex.TypeKind.RECORD, cindex.TypeKind.ENUM, cindex.TypeKind.POINTER


def isNameless(type):
    """Whether a type has no name of its own, or only a tag."""
    return type.get_canonical().kind == RECORD and type.spelling.startswith(("struct ", "union "))


def fieldsOf(type, path="", base=0):
    """Type, path and offset of every member."""
    for field in type.get_canonical().get_fields():
        offset, name = base + field.get_field_offsetof() // 8, path + field.spelling
        if isNameless(field.type):
            yield from fieldsOf(field.type, name + "." if field.spelling else path, offset)
        else:
            yield field.type.spelling, name, offset


def valuesOf(declaration):
    enumerators = [each for each in declaration.get_children() if each.kind == cindex.CursorKind.ENUM_CONSTANT_DECL]
    for each in enumerators:
        # Marks the end of the list; other operations have real maxima.
        isEnd = each.spelling.endswith("_MAX") and all(other.spelling.startswith(each.spelling[:-3]) for other in enumerators)
        if not isEnd and not NO_VALUE.search(each.spelling):
            yield f"{each.spelling} {each.enum_value}"


def lineOf(name, type):
    whole = type.get_canonical()
    declaration = type.get_declaration()
    if declaration.kind == cindex.CursorKind.TYPEDEF_DECL and whole.kind in (RECORD, ENUM) and whole.get_size() > 0:
        return f"same {name} {declaration.spelling}"
    if whole.kind == POINTER:
        return f"pointer {name}"
    if whole.kind == ENUM:
        return f"enum {name} ({', '.join(valuesOf(whole.get_declaration()))})"
    if whole.kind == RECORD:
        fields = ", ".join(f"{spelling} {path} @{offset}" for spelling, path, offset in fieldsOf(type))
        return f"structure {name} {whole.get_size()} ({fields})" if whole.get_size() > 0 else None
    return f"number {name} {whole.get_size()}" if whole.get_size() > 0 else None


def typesOf(unit):
    """The lines of all types of a vendor whose names begin as its own do."""
    lines = {}
    for cursor in unit.cursor.get_children():
        if cursor.kind == cindex.CursorKind.TYPEDEF_DECL and re.match(r"(CU|cuuint)", cursor.spelling):
            if line := lineOf(cursor.spelling, cursor.underlying_typedef_type):
                lines[cursor.spelling] = line
    return lines


def textOf(lines):
    return BANNER + "".join(
        line + "\n" for name in sorted(lines)
        for line in textwrap.wrap(lines[name], 130, subsequent_indent=" " * 6, break_long_words=False, break_on_hyphens=False))


def readTypes(text):
    """The lines of a file, by name."""
    lines = {}
    for line in text.splitlines():
        if line.startswith(" "):
            lines[name] += " " + line.strip()
        elif line and not line.startswith("#"):
            name = line.split()[1]
            lines[name] = line
    return lines


def differencesOf(ours, theirs):
    return [f"{name}: '{ours.get(name, 'nothing')}' in the types' file, '{theirs.get(name, 'nothing')}' in the headers"
            for name in sorted(ours.keys() | theirs.keys()) if ours.get(name) != theirs.get(name)]
