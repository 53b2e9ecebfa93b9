# cli.cmake -- the command line, cli/, which cargo builds: build/hakmem, and its tests.
#
# Without a new enough cargo the library is still built, and the message says so.
set(HAK_CARGO_OLDEST 1.85)

find_program(HAK_CARGO cargo)
set(cargo_version 0)
if(HAK_CARGO)
    execute_process(COMMAND "${HAK_CARGO}" --version OUTPUT_VARIABLE cargo_version ERROR_QUIET)
    string(REGEX MATCH "[0-9]+\\.[0-9]+" cargo_version "${cargo_version}")
endif()
if(cargo_version VERSION_LESS HAK_CARGO_OLDEST)
    message(NOTICE "build: the command line is left out: it needs cargo ${HAK_CARGO_OLDEST} "
        "(tools/setup build installs it)")
    return()
endif()

set(cargo_arguments --locked --quiet
    --manifest-path "${PROJECT_SOURCE_DIR}/cli/Cargo.toml" --target-dir "${PROJECT_BINARY_DIR}/cargo")
set(pages "${PROJECT_BINARY_DIR}/objects/pages")
add_custom_target(cli ALL
    COMMAND "${HAK_CARGO}" build --release ${cargo_arguments}
    COMMAND "${CMAKE_COMMAND}" -E copy_if_different
            "${PROJECT_BINARY_DIR}/cargo/release/hakmem" "${PROJECT_BINARY_DIR}/hakmem"
    COMMAND "${PROJECT_BINARY_DIR}/hakmem" generate "${pages}"
    COMMENT "Building build/hakmem"
    USES_TERMINAL VERBATIM)

install(PROGRAMS "${PROJECT_BINARY_DIR}/hakmem" DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(DIRECTORY "${pages}/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" FILES_MATCHING PATTERN "*.1")
install(FILES "${pages}/hakmem.bash" RENAME hakmem
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
install(FILES "${pages}/_hakmem" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
install(FILES "${pages}/hakmem.fish" DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")

if(HAKMEM_TESTS)
    # Compiled with the other tests, on top of what the release has compiled; then ctest only has to run them. (cargo
    # also makes another build/cargo/release/hakmem. The target `cli` puts its own there again.)
    set(test_arguments test --release --config "${PROJECT_SOURCE_DIR}/cli/tests.toml" --tests ${cargo_arguments})
    add_custom_target(cli_tests
        COMMAND "${HAK_CARGO}" ${test_arguments} --no-run
        USES_TERMINAL VERBATIM)
    add_dependencies(cli_tests cli) # not both at the same time: cargo locks its folder
    add_test(NAME cli COMMAND "${HAK_CARGO}" ${test_arguments} --no-fail-fast)
    # The longest test, which often waits: others run beside it, and it is not started last.
    set_tests_properties(cli PROPERTIES LABELS cli TIMEOUT 900 COST 1000
        ENVIRONMENT "HAKMEM_BUILD=${PROJECT_BINARY_DIR}")
endif()
