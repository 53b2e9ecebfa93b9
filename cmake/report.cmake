# report.cmake -- the HTML page that `hakmem report` fills in: build/report.html, bundled by npm.
#
# The packages go into the build folder, so that the sources do not change. Without npm the rest is
# still built, and the message says so.
find_program(HAK_NPM npm)
find_program(HAK_NODE node)
if(NOT HAK_NPM OR NOT HAK_NODE)
    message(NOTICE "build: the page of hakmem report is left out: it needs npm "
        "(tools/setup build installs it)")
    return()
endif()

set(report "${PROJECT_SOURCE_DIR}/cli/report")
set(report_folder "${PROJECT_BINARY_DIR}/report")
file(GLOB report_sources CONFIGURE_DEPENDS "${report}/src/*" "${report}/test/*")
add_custom_command(
    OUTPUT "${report_folder}/node_modules/.package-lock.json"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${report_folder}"
    COMMAND "${CMAKE_COMMAND}" -E copy "${report}/package.json" "${report}/package-lock.json"
            "${report_folder}"
    COMMAND "${HAK_NPM}" ci --ignore-scripts --no-audit --no-fund --loglevel=error
    DEPENDS "${report}/package.json" "${report}/package-lock.json"
    WORKING_DIRECTORY "${PROJECT_BINARY_DIR}/report"
    COMMENT "Fetching the packages of the report"
    VERBATIM)
file(MAKE_DIRECTORY "${report_folder}") # the working directory must exist
add_custom_command(
    OUTPUT "${PROJECT_BINARY_DIR}/report.html"
    COMMAND "${CMAKE_COMMAND}" -E copy_directory "${report}/src" "${report_folder}/src"
    COMMAND "${CMAKE_COMMAND}" -E copy_directory "${report}/test" "${report_folder}/test"
    COMMAND "${CMAKE_COMMAND}" -E copy "${report}/build.mjs" "${report_folder}"
    COMMAND "${HAK_NODE}" "${report_folder}/build.mjs" "${PROJECT_BINARY_DIR}/report.html"
    DEPENDS "${report_folder}/node_modules/.package-lock.json" ${report_sources} "${report}/build.mjs"
    COMMENT "Building build/report.html"
    VERBATIM)
add_custom_target(report ALL DEPENDS "${PROJECT_BINARY_DIR}/report.html")
install(FILES "${PROJECT_BINARY_DIR}/report.html"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/hakmem" OPTIONAL)
