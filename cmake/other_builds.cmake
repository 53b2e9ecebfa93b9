# ctest reads this in the release build: with HAKMEM_TEST_BUILDS="asan tsan …" it also runs the tests of
# those builds, which are in folders below this one. tools/test builds them first.
separate_arguments(hakmem_builds UNIX_COMMAND "$ENV{HAKMEM_TEST_BUILDS}")
foreach(hakmem_build IN LISTS hakmem_builds)
    subdirs("${hakmem_build}")
endforeach()
