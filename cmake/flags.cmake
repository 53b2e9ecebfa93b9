# flags.cmake -- the flags of every compilation: `hak_warnings` and `hak_options`, linked by each target.

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()
# No -DNDEBUG: it would remove the assertions of the tests. -g costs no instruction, and profiles need it.
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g")
set(CMAKE_C_FLAGS_DEBUG "-Og -g3")
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g3")
if(CMAKE_C_COMPILER_ID STREQUAL "Clang")
    string(APPEND CMAKE_C_FLAGS_RELEASE " -gdwarf-4") # valgrind 3.19 fails on clang's version 5
endif()
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

add_library(hak_warnings INTERFACE)
target_compile_options(hak_warnings INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef
    # gcc does not accept HAK_REQUIRES in definitions; it never sees it (base/compiler.h).
    $<$<COMPILE_LANG_AND_ID:C,Clang>:-Wno-gcc-compat>
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
    $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
    $<$<BOOL:${HAKMEM_WERROR}>:-Werror>)

# Options of the library and its tests.
add_library(hak_options INTERFACE)
target_include_directories(hak_options INTERFACE "${PROJECT_SOURCE_DIR}/include")
# Defined as nothing, so that a file which also says `#define _GNU_SOURCE` does not redefine it.
target_compile_definitions(hak_options INTERFACE $<$<COMPILE_LANGUAGE:C>:_GNU_SOURCE=>)
target_link_libraries(hak_options INTERFACE hak_warnings Threads::Threads)
if(HAKMEM_SANITIZE)
    target_compile_options(hak_options INTERFACE
        -fsanitize=${HAKMEM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(hak_options INTERFACE -fsanitize=${HAKMEM_SANITIZE})
    if(HAKMEM_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID STREQUAL "Clang")
        # clang keeps separate stacks for the locals of each thread of the C library; threads made by clone have none.
        target_compile_options(hak_options INTERFACE -fsanitize-address-use-after-return=never)
    endif()
endif()

# Options of the allocator's own files only.
add_library(hak_library_options INTERFACE)
target_link_libraries(hak_library_options INTERFACE hak_options)
target_include_directories(hak_library_options INTERFACE "${PROJECT_SOURCE_DIR}/src")
if(HAKMEM_SANITIZE)
    target_compile_definitions(hak_library_options INTERFACE HAK_NO_OVERRIDE=1)
endif()
target_compile_options(hak_library_options INTERFACE
    # Debug information has file names relative to this folder: a build in another folder, also outside the sources, is the same, bit
    # for bit. The last option that fits counts.
    "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=."
    "-ffile-prefix-map=${PROJECT_BINARY_DIR}=./build"
    -fvisibility=hidden
    # One instruction for a thread-local variable instead of a call, and no allocation on its first use.
    -ftls-model=initial-exec
    # Whatever CFLAGS says: the archive's single object hides its names by their symbols, and only machine code has them all.
    -fno-lto
    # Nobody replaces a function inside the library: calls between its exported functions stay direct.
    -fno-semantic-interposition
    # The compiler must not take our own malloc for the standard's: it would, for instance, turn
    # calloc's malloc and memset into a call of calloc.
    -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free
    -fno-builtin-aligned_alloc -fno-builtin-posix_memalign -fno-builtin-memalign
    # The stack protector reads its canary from the C library's thread block: every allocation would pay for it.
    -fno-stack-protector)
if(NOT HAKMEM_SANITIZE)
    # zig's clang keeps it, also in malloc and free.
    target_compile_options(hak_library_options INTERFACE $<$<C_COMPILER_ID:Clang>:-fomit-frame-pointer>)
endif()
if(HAKMEM_MTE)
    if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
        message(FATAL_ERROR "HAKMEM_MTE: only aarch64 has memory tags")
    endif()
    target_compile_definitions(hak_library_options INTERFACE HAK_MTE=1)
endif()
if(HAKMEM_CONTENTION)
    target_compile_definitions(hak_library_options INTERFACE HAK_CONTENTION=1)
endif()
if(HAKMEM_COVERAGE)
    # %c: the counters are mapped from the file, so that programs count that abort, end by _exit or are
    # killed. %m: a file for each binary, that all its processes share.
    set(HAK_COVERAGE_LINK "-fprofile-instr-generate=${PROJECT_BINARY_DIR}/counts/%m%c.profraw")
    target_compile_options(hak_library_options INTERFACE
        ${HAK_COVERAGE_LINK} -fcoverage-mapping "SHELL:-mllvm -runtime-counter-relocation=true")
    target_link_options(hak_library_options INTERFACE ${HAK_COVERAGE_LINK})
endif()

# The names in hakmem.h, the command line's version and the one here are one fact written three times; check that they agree.
set(public_header "${PROJECT_SOURCE_DIR}/include/hakmem/hakmem.h")
if(EXISTS "${public_header}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${public_header}")
    foreach(part MAJOR MINOR PATCH)
        file(STRINGS "${public_header}" line REGEX "^#define HAKMEM_VERSION_${part} +[0-9]+")
        if(line AND NOT line MATCHES "HAKMEM_VERSION_${part} +${PROJECT_VERSION_${part}}$")
            message(FATAL_ERROR "hakmem.h says '${line}', but CMakeLists.txt has ${PROJECT_VERSION}")
        endif()
    endforeach()
endif()
set(command_line "${PROJECT_SOURCE_DIR}/cli/Cargo.toml")
if(EXISTS "${command_line}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${command_line}")
    file(STRINGS "${command_line}" line REGEX "^version = ")
    if(NOT line STREQUAL "version = \"${PROJECT_VERSION}\"")
        message(FATAL_ERROR "cli/Cargo.toml says '${line}', but CMakeLists.txt has ${PROJECT_VERSION}")
    endif()
endif()
