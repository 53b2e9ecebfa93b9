# install.cmake -- headers, libraries, pkg-config file and CMake package.
include(CMakePackageConfigHelpers)

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/hakmem" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(TARGETS hakmem hakmem_static EXPORT hakmem
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")

# Both descriptions find the library relative to themselves, so an installed tree can be moved.
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/hakmem")
install(EXPORT hakmem NAMESPACE hakmem:: DESTINATION "${package_dir}" FILE hakmemTargets.cmake)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/hakmemConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/objects/hakmemConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/objects/hakmemConfigVersion.cmake"
    COMPATIBILITY SameMajorVersion)
install(FILES "${PROJECT_BINARY_DIR}/objects/hakmemConfig.cmake"
    "${PROJECT_BINARY_DIR}/objects/hakmemConfigVersion.cmake" DESTINATION "${package_dir}")

# The folders may be absolute, or outside the prefix.
file(RELATIVE_PATH pc_to_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
file(RELATIVE_PATH pc_libdir "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_LIBDIR}")
file(RELATIVE_PATH pc_includedir "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/hakmem.pc.in" "${PROJECT_BINARY_DIR}/objects/hakmem.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/objects/hakmem.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# The documents, laid out as in the sources: their links to each other work, and files named by help, man
# pages and the header, such as docs/options.md, exist.
install(FILES README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md RELEASING.md SECURITY.md LICENSE
    DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs contrib DESTINATION "${CMAKE_INSTALL_DOCDIR}" PATTERN man3 EXCLUDE)
install(DIRECTORY tests/models DESTINATION "${CMAKE_INSTALL_DOCDIR}/tests") # docs/concurrency.md links to them

# The pages of the C API, and for each other function of a page a line that leads to the page.
file(GLOB api_pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/man3/*.3")
set(page_links "${PROJECT_BINARY_DIR}/objects/man3")
file(REMOVE_RECURSE "${page_links}")
foreach(page IN LISTS api_pages)
    get_filename_component(page_name "${page}" NAME)
    file(STRINGS "${page}" named REGEX "^hak[a-z_, ]* \\\\- " LIMIT_COUNT 1)
    string(REGEX MATCHALL "hak_[a-z_]+" functions "${named}")
    foreach(function IN LISTS functions)
        if(NOT "${function}.3" STREQUAL page_name)
            file(WRITE "${page_links}/${function}.3" ".so man3/${page_name}\n")
        endif()
    endforeach()
endforeach()
install(FILES ${api_pages} DESTINATION "${CMAKE_INSTALL_MANDIR}/man3")
install(DIRECTORY "${page_links}/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man3")
