# bench.cmake -- the benchmark programs, into build/bench/.
#
# They call the ordinary malloc and link no allocator: each run preloads one.

add_library(hak_bench_options INTERFACE)
target_link_libraries(hak_bench_options INTERFACE hak_warnings Threads::Threads m)
target_compile_definitions(hak_bench_options INTERFACE _GNU_SOURCE=)
# Allocations are what is measured: the compiler may not leave any out.
target_compile_options(hak_bench_options INTERFACE
    -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free)

file(GLOB support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/workloads/support/*.c")
file(GLOB programs CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/workloads/*.c")
if(support)
    add_library(hak_bench_support OBJECT ${support})
    target_link_libraries(hak_bench_support PRIVATE hak_bench_options)
    set(support "$<TARGET_OBJECTS:hak_bench_support>")
endif()
foreach(program IN LISTS programs)
    get_filename_component(name "${program}" NAME_WE)
    add_executable(${name} "${program}" ${support})
    target_link_libraries(${name} PRIVATE hak_bench_options)
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
endforeach()

if(EXISTS "${PROJECT_SOURCE_DIR}/bench/measure/CMakeLists.txt")
    add_subdirectory("${PROJECT_SOURCE_DIR}/bench/measure" objects/bench/measure)
endif()
