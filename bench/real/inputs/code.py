"""What compilers, linkers and other tools for programs read."""

from .numbers import Numbers


def classes_cpp(count: int) -> bytes:
    """Templates of the standard library, each time with a type of their own."""
    numbers = Numbers(21)
    lines = [f"#include <{name}>" for name in ("algorithm", "functional", "map", "memory", "string", "unordered_map", "vector")]
    for number in range(count):
        lines += [
            f"struct item_{number} {{ int value; std::string name; bool operator<(const item_{number} &other) const "
            "{ return value < other.value; } };",
            f"int use_{number}(int count)", "{",
            f"    std::map<std::string, std::vector<item_{number}>> groups;",
            f"    std::unordered_map<int, std::unique_ptr<item_{number}>> owned;",
            "    for (int i = 0; i < count; i++) {",
            f"        groups[std::to_string(i % {2 + numbers.below(50)})].push_back({{i, \"n\"}});",
            f"        owned.emplace(i, std::make_unique<item_{number}>());",
            "    }",
            f"    std::function<int(const item_{number} &)> weight = [=](const auto &one) {{ return one.value * {numbers.below(9)}; }};",
            "    int sum = 0;",
            "    for (auto &[name, members] : groups) {",
            "        std::sort(members.begin(), members.end());",
            "        for (const auto &one : members) { sum += weight(one); }",
            "    }",
            "    return sum + int(owned.size());", "}",
        ]
    return "\n".join([*lines, ""]).encode()


def object_source(file: int, symbols: int, files: int) -> bytes:
    """Assembler: functions in their own sections that call those of other files, inline copies, texts."""
    numbers = Numbers(22 + file)
    lines = []
    for number in range(symbols):
        name = f"_ZN4work8function{file}x{number}Ev"
        lines += [f".section .text.{name},\"ax\"", f".globl {name}", f".type {name},@function", f"{name}:"]
        for _ in range(3):
            lines.append(f".quad _ZN4work8function{numbers.below(files)}x{numbers.below(symbols)}Ev")
        lines += [f".quad text{number}", f".size {name},.-{name}", ".section .rodata.str1.1,\"aMS\",@progbits,1",
                  f"text{number}: .string \"{numbers.words(3)}\""]
        shared = f"_ZN4work6inline{numbers.below(symbols * 4)}Ev"
        if f"{shared}:" not in lines:
            lines += [f".section .text.{shared},\"axG\",@progbits,{shared},comdat", f".weak {shared}", f"{shared}:",
                      f".quad {name}"]
    if file == 0:
        lines += [".text", ".globl _start", "_start:", ".quad _ZN4work8function0x0Ev"]
    return "\n".join([*lines, ""]).encode()


def messages_proto(count: int) -> bytes:
    numbers = Numbers(23)
    kinds = ("int32", "string", "bytes", "double", "bool", "uint64")
    lines = ["syntax = \"proto3\";", "package work;"]
    for number in range(count):
        lines.append(f"message Record{number} {{")
        for field in range(1, 13):
            kind = kinds[numbers.below(6)] if number == 0 or field % 4 else f"Record{numbers.below(number)}"
            lines.append(f"  {'repeated ' if field % 5 == 0 else ''}{kind} {numbers.word()}_{field} = {field};")
        lines += [f"  enum Kind {{ NONE = 0; SOME = {1 + numbers.below(9)}; }}", "  Kind kind = 20;",
                  "  map<string, int64> counts = 21;", "}"]
    return "\n".join([*lines, ""]).encode()


def style_scss(count: int) -> bytes:
    numbers = Numbers(24)
    lines = ["@mixin box($size, $tint: #336699) { width: $size * 2; border: 1px solid darken($tint, 10%);",
             "  &:hover { color: lighten($tint, 20%); .inner & { margin: $size / 3; } } }"]
    for number in range(count):
        lines += [f".{numbers.word()}-{number} {{ @include box({1 + numbers.below(40)}px, #{numbers.below(1 << 24):06x});",
                  f"  .{numbers.word()}, #{numbers.word()} {{ @for $i from 1 through {2 + numbers.below(6)} {{",
                  f"    > .c-#{{$i}} {{ padding: percentage($i / 7); @extend .{numbers.word()[:2]}x !optional; }} }} }} }}"]
    return "\n".join([*lines, ""]).encode()


def build_cmake(targets: int) -> bytes:
    """A project without a language: only cmake's own work."""
    numbers = Numbers(25)
    lines = ["cmake_minimum_required(VERSION 3.16)", "project(work NONE)"]
    for number in range(targets):
        words = " ".join(f"{numbers.word()}{place}" for place in range(40))
        lines += [f"set(words_{number} {words})", f"foreach(word IN LISTS words_{number})",
                  f"  string(REGEX REPLACE \"([aeiou])\" \"<\\\\1>\" shown \"${{word}}\")",
                  f"  list(APPEND shown_{number} \"${{shown}}\")", "endforeach()",
                  f"list(SORT shown_{number})", f"add_custom_command(OUTPUT out_{number}.txt COMMAND echo ${{shown_{number}}})",
                  f"add_custom_target(target_{number} DEPENDS out_{number}.txt)"]
        if number:
            lines.append(f"add_dependencies(target_{number} target_{numbers.below(number)} target_{numbers.below(number)})")
    return "\n".join([*lines, ""]).encode()


def manifest_ninja(edges: int) -> bytes:
    """Files that are made from files."""
    numbers = Numbers(26)
    lines = ["rule copy", "  command = cat $in > $out", "  description = copy $flags"]
    for number in range(edges):
        made = [numbers.below(number) for _ in range(1 + numbers.below(5))] if number else []
        inputs = " ".join(f"dir{one % 331}/file{one}.o" for one in made) or "build.ninja"
        lines += [f"build dir{number % 331}/file{number}.o: copy {inputs}",
                  f"  flags = -O2 -I{numbers.word()} -D{numbers.word()}"]
    return "\n".join([*lines, ""]).encode()
