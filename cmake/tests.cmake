# tests.cmake -- turns a program into a test. tests/CMakeLists.txt says which programs there are.
#
# A test's source says at its top what it needs, in comments that tests/README.md lists.

# What the tests need and `make` alone does not build; and what only those with the label `soak` need.
add_custom_target(tests)
add_custom_target(soak_tests)

# Emulators and sanitizers are slower than the machine.
set(HAK_PATIENCE 1)
if(CMAKE_CROSSCOMPILING OR HAKMEM_SANITIZE)
    set(HAK_PATIENCE 5)
endif()

# The text after "// <name>:", the word ON for a bare "// <name>", empty without such a line.
function(hak_marker source name result)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
    file(STRINGS "${source}" lines REGEX "^// ${name}(: .*)?$" LIMIT_COUNT 1)
    set(${result} "" PARENT_SCOPE)
    if(lines MATCHES "^// ${name}: (.*)$")
        string(STRIP "${CMAKE_MATCH_1}" text)
        set(${result} "${text}" PARENT_SCOPE)
    elseif(lines)
        set(${result} ON PARENT_SCOPE)
    endif()
endfunction()

# Tests that take too long for `make test` in this build, which is not the first one: tools/soak runs them (`// soak in: BUILDS`). For
# another machine that includes a promise's linked form, if it also runs preloaded: with an archive only the
# linking differs, which the static forms cover as well. For another C library it includes the stress tests.
function(hak_is_for_soak name source result)
    string(REPLACE "/" "" build "${HAKMEM_TEST_PREFIX}")
    hak_marker("${source}" "soak in" builds)
    separate_arguments(builds UNIX_COMMAND "${builds}")
    hak_marker("${source}" "linked only" linked_only)
    if(build AND build IN_LIST builds)
        set(${result} ON PARENT_SCOPE)
    elseif(CMAKE_CROSSCOMPILING AND NOT linked_only AND name MATCHES "linked$")
        set(${result} ON PARENT_SCOPE)
    elseif(NOT HAK_HAVE_GLIBC AND NOT linked_only AND name MATCHES "linked$|^stress|^fuzz")
        set(${result} ON PARENT_SCOPE)
    else()
        set(${result} OFF PARENT_SCOPE)
    endif()
endfunction()

# Compile `target` as the tests are compiled.
function(hak_compile_for_tests target)
    target_link_libraries(${target} PRIVATE hak_test_options)
    # Allocations are what the tests are about: the compiler must not remove any.
    target_compile_options(${target} PRIVATE
        -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free
        -fno-builtin-aligned_alloc -fno-builtin-posix_memalign -fno-builtin-memalign)
endfunction()

# Add an executable that is built only for the tests.
function(hak_add_program target source)
    add_executable(${target} EXCLUDE_FROM_ALL "${source}" ${ARGN})
    hak_compile_for_tests(${target})
    hak_build_for_tests(${target} "${source}")
endfunction()

# Add an executable that is linked from the object of `compiled`, which was made from the same source.
function(hak_link_program target source compiled)
    add_executable(${target} EXCLUDE_FROM_ALL "$<TARGET_OBJECTS:${compiled}>")
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
    if(source MATCHES "\\.cpp$")
        set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
    endif()
    target_link_libraries(${target} PRIVATE hak_test_options)
    hak_build_for_tests(${target} "${source}")
endfunction()

function(hak_build_for_tests target source)
    hak_is_for_soak("${target}" "${source}" for_soak)
    if(for_soak)
        add_dependencies(soak_tests ${target})
    else()
        add_dependencies(tests ${target})
    endif()
endfunction()

# `target` is run with the library preloaded. Some functions only this library has, as musl has no malloc_trim and an older glibc no
# mallinfo2: the linker finds these in it, after all those of the C library.
function(hak_preload_into target)
    add_dependencies(${target} hakmem)
    if(NOT HAK_HAVE_MALLINFO2)
        target_link_libraries(${target} PRIVATE c -Wl,--as-needed hakmem)
    endif()
endfunction()

# Register a test that runs `COMMAND …`, of the kind `LABEL`, as the markers in `SOURCE` say.
#   PRELOAD   run it with the library in LD_PRELOAD
#   WRAPPER … what to put before the command, for example a script that judges it
function(hak_add_test name)
    cmake_parse_arguments(ARG "PRELOAD" "LABEL;SOURCE;TIMEOUT" "COMMAND;WRAPPER;ENV" ${ARGN})
    hak_marker("${ARG_SOURCE}" "args" arguments)
    set(fewer "")
    if(HAKMEM_TEST_PREFIX)
        string(REPLACE "/" "" build "${HAKMEM_TEST_PREFIX}")
        hak_marker("${ARG_SOURCE}" "args in ${build}" fewer)
    endif()
    if(NOT fewer AND name MATCHES "/secure$")
        hak_marker("${ARG_SOURCE}" "args in secure" fewer)
    endif()
    if(fewer)
        set(arguments "${fewer}")
    endif()
    hak_marker("${ARG_SOURCE}" "env" environment)
    hak_marker("${ARG_SOURCE}" "timeout" timeout)
    hak_marker("${ARG_SOURCE}" "serial" serial)
    hak_marker("${ARG_SOURCE}" "sleeps" sleeps)
    hak_marker("${ARG_SOURCE}" "native only" native_only)
    hak_marker("${ARG_SOURCE}" "tags only" tags_only)
    hak_marker("${ARG_SOURCE}" "not tagged" not_tagged)
    if((tags_only AND NOT HAKMEM_MTE) OR (not_tagged AND HAKMEM_MTE))
        return()
    endif()
    if(CMAKE_CROSSCOMPILING AND (native_only OR name MATCHES "fork"))
        return() # qemu 7.2 aborts when the forked child of a threaded program starts a thread
    endif()
    separate_arguments(arguments UNIX_COMMAND "${arguments}")
    separate_arguments(environment UNIX_COMMAND "${environment}")
    list(APPEND environment ${ARG_ENV})
    set(launch ${CMAKE_CROSSCOMPILING_EMULATOR})
    if(HAKMEM_MTE)
        # qemu 7.2 faults when a correctly tagged pointer clears a line (dc zva): use a memset without it.
        list(APPEND launch -E "GLIBC_TUNABLES=glibc.cpu.name=kunpeng920")
    endif()
    if(ARG_PRELOAD AND launch)
        list(APPEND launch -E "LD_PRELOAD=$<TARGET_FILE:hakmem>")
    elseif(ARG_PRELOAD)
        # Not in the test's environment: a script in front of the program would get it, too.
        set(launch env "LD_PRELOAD=$<TARGET_FILE:hakmem>")
    endif()
    if(NOT timeout)
        set(timeout ${ARG_TIMEOUT})
    endif()
    math(EXPR timeout "${timeout} * ${HAK_PATIENCE}")

    hak_is_for_soak("${name}" "${ARG_SOURCE}" for_soak)
    if(for_soak)
        list(APPEND ARG_LABEL soak)
    endif()
    add_test(NAME "${HAKMEM_TEST_PREFIX}${name}"
        COMMAND ${ARG_WRAPPER} ${launch} ${ARG_COMMAND} ${arguments})
    set_tests_properties("${HAKMEM_TEST_PREFIX}${name}" PROPERTIES
        ENVIRONMENT "HAKMEM_LIB=$<TARGET_FILE:hakmem>;${environment}"
        LABELS "${ARG_LABEL}"
        TIMEOUT ${timeout}
        SKIP_RETURN_CODE 77)
    if(serial)
        set_tests_properties("${HAKMEM_TEST_PREFIX}${name}" PROPERTIES RUN_SERIAL ON)
    elseif(sleeps)
        # With as many jobs as processors nothing else runs at the same time.
        cmake_host_system_information(RESULT processors QUERY NUMBER_OF_LOGICAL_CORES)
        set_tests_properties("${HAKMEM_TEST_PREFIX}${name}" PROPERTIES
            LABELS "${ARG_LABEL};sleeps" PROCESSORS ${processors})
    endif()
endfunction()

# Register the test `name` again, with the same arguments, for each size in `// pages:`, if this
# build can have larger pages than the machine's.
function(hak_add_paged_tests name)
    cmake_parse_arguments(ARG "PRELOAD" "SOURCE" "" ${ARGN})
    hak_marker("${ARG_SOURCE}" "pages" sizes)
    separate_arguments(sizes UNIX_COMMAND "${sizes}")
    if(CMAKE_CROSSCOMPILING)
        set(variable QEMU_PAGESIZE)
    elseif(name MATCHES "^unit/" AND NOT HAKMEM_SANITIZE)
        set(variable HAK_FAKE_PAGE_BYTES)
    else()
        return()
    endif()
    foreach(bytes IN LISTS sizes)
        hak_add_test("${name}/pages_of_${bytes}" ${ARGN} ENV "${variable}=${bytes}")
    endforeach()
endfunction()

# The programs of a folder of tests, as <result>; the folder need not exist.
function(hak_test_sources folder result)
    file(GLOB sources CONFIGURE_DEPENDS
        "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.c" "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp")
    if(NOT HAK_HAVE_CXX)
        list(FILTER sources EXCLUDE REGEX "\\.cpp$")
        foreach(source IN LISTS sources)
            hak_marker("${source}" "with C\\+\\+" with_cxx)
            if(with_cxx)
                list(REMOVE_ITEM sources "${source}")
            endif()
        endforeach()
    endif()
    if(NOT HAK_HAVE_GLIBC)
        foreach(source IN LISTS sources)
            hak_marker("${source}" "glibc only" glibc_only)
            if(glibc_only)
                list(REMOVE_ITEM sources "${source}")
            endif()
        endforeach()
    endif()
    if(HAKMEM_CORE)
        foreach(source IN LISTS sources)
            hak_marker("${source}" "with features" with_features)
            if(with_features)
                list(REMOVE_ITEM sources "${source}")
            endif()
        endforeach()
    endif()
    set(${result} "${sources}" PARENT_SCOPE)
endfunction()
